"""``semel enqueue``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semel.cli.choices import AsJson, Database, Schema, parse_when
from semel.cli.output import print_json
from semel.cli.place import find_app, load_app, open_place

if TYPE_CHECKING:
    from semel.core.job import Enqueued, NewJob


Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[APP] KIND", help="The application (or SEMEL_APP) and the kind.", show_default=False
    ),
]
Arguments = Annotated[str, typer.Option("--args", metavar="JSON", help="The arguments by name.")]
Raw = Annotated[bool, typer.Option("--raw", help="Without the application: the arguments are not checked.")]
QueueName = Annotated[
    str | None, typer.Option("--queue", "-q", metavar="NAME", help="Where it waits [the job's own].")
]
Priority = Annotated[
    int | None,
    typer.Option("--priority", metavar="N", min=-100, max=100, help="Larger runs first [the job's own]."),
]
MaxAttempts = Annotated[
    int | None, typer.Option("--max-attempts", metavar="N", min=1, help="Before it fails [the job's own].")
]
Run = Annotated[
    str | None, typer.Option("--run", metavar="WHEN", help='After a while ("10 min"), or at a date.')
]
UniqueKey = Annotated[
    str | None, typer.Option("--unique-key", metavar="KEY", help="Let one job of this kind in.")
]
UniqueFor = Annotated[
    str | None, typer.Option("--unique-for", metavar="DURATION", help="At least so long from now.")
]


def enqueue(
    words: Words,
    args: Arguments = "{}",
    raw: Raw = False,
    queue: QueueName = None,
    priority: Priority = None,
    max_attempts: MaxAttempts = None,
    run: Run = None,
    unique_key: UniqueKey = None,
    unique_for: UniqueFor = None,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Store one job.

    Its arguments are checked by the handler's signature.

    Example: semel enqueue shop.jobs:app welcome_email --args '{"user_id": 1}'
    """
    options = _options(
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
        unique_key=unique_key,
        unique_for=unique_for,
        run_after=parse_when(run, "--run"),
    )
    arguments = _parse(args)
    if raw:
        kind = _only_kind(words)
        stored = _store_raw(kind, arguments, options, database, schema)
    else:
        name, kind = words if len(words) == 2 else (None, _only_kind(words))
        stored = _store(find_app(name), kind, arguments, options, database, schema)
    _report(stored, kind, as_json)


def _report(stored: Enqueued, kind: str, as_json: bool) -> None:
    if as_json:
        print_json({"id": stored.id, "created": stored.created, "status": stored.status, "kind": kind})
    elif stored.created:
        typer.echo(f"Job {stored.id}: {kind}, {stored.status}.")
    else:
        typer.echo(f"Job {stored.id} has this unique key already; it is {stored.status}.")


def _only_kind(words: list[str]) -> str:
    from semel.errors import ConfigurationError

    if len(words) != 1:
        raise ConfigurationError(
            f"{len(words)} words are too many.",
            remedy="semel enqueue [APP] KIND, or semel enqueue --raw KIND.",
        )
    return words[0]


def _options(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _parse(text: str) -> dict[str, Any]:
    from semel.errors import ArgumentError

    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ArgumentError(
            f"--args is not JSON: {error}.", remedy="""Write --args '{"user_id": 1}'."""
        ) from error
    if not isinstance(parsed, dict):
        raise ArgumentError("--args is no JSON object.", remedy="""Write --args '{"user_id": 1}'.""")
    return parsed


def _store(
    app_name: str,
    kind: str,
    arguments: dict[str, Any],
    options: dict[str, Any],
    database: str | None,
    schema: str | None,
) -> Enqueued:
    """With the application: its checks, on the database that it or the command line says."""
    from semel.errors import UnknownKind

    app = load_app(app_name)
    job = app.jobs.get(kind)
    if job is None:
        raise UnknownKind(
            f"{app_name} has no job {kind!r}.", remedy=f"It has: {', '.join(sorted(app.jobs)) or 'none'}."
        )
    new = job.using(**options).new(**arguments)
    return _insert(new, database or app.url, schema or app.catalogue.schema)


def _store_raw(
    kind: str, arguments: dict[str, Any], options: dict[str, Any], database: str | None, schema: str | None
) -> Enqueued:
    from datetime import datetime

    from semel.core.job import JobOptions, NewJob
    from semel.core.settings import Settings
    from semel.errors import ArgumentsTooLarge

    when = options.pop("run_after", None)
    if when is not None:
        options["run_at" if isinstance(when, datetime) else "run_after"] = when
    payload = json.dumps(arguments, ensure_ascii=False).encode()
    limit = Settings().payload_limit
    if len(payload) > limit:
        raise ArgumentsTooLarge(
            f"The arguments take {len(payload):,} bytes, over the limit of {limit:,}.",
            remedy="Store the data and pass its id.",
        )
    return _insert(NewJob(kind, payload, JobOptions(**options)), database, schema)


def _insert(new: NewJob, database: str | None, schema: str | None) -> Enqueued:
    from semel.operate import carry_out
    from semel.store.enqueue import enqueue as store

    with open_place(database, schema) as session:
        return carry_out(store(new), session)
