"""``semel note``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semel.cli.choices import Schema
from semel.cli.group import NOT_SO
from semel.cli.guard_place import GuardDatabase

if TYPE_CHECKING:
    from semel.note.origin import Origin
    from semel.note.page import Page

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODULE:NAME]",
        help="A guarded function, a job with once=, a Celery task, or a consumer of SQS. With --check the note says it.",
        show_default=False,
    ),
]
ExampleCall = Annotated[
    str | None,
    typer.Option(
        "--example",
        metavar="JSON",
        help="The arguments of the worked example, by name [made from the annotations].",
    ),
]
Redelivery = Annotated[
    str | None,
    typer.Option(
        "--longest-redelivery", metavar="TIME", help='How late a message can still come: "14 days".'
    ),
]
Modules = Annotated[
    list[str] | None,
    typer.Option("--module", metavar="MODULE", help="A further module to look for ways in; may be repeated."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where the Markdown goes [standard output]."),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write it as one self-contained HTML file.")
]
Check = Annotated[
    Path | None,
    typer.Option(
        "--check", metavar="FILE", help="Compare a written note (Markdown or HTML); print what differs."
    ),
]
Since = Annotated[str, typer.Option("--since", metavar="AGE", help="The runs that are measured, up to now.")]


def note(
    target: Target = None,
    example: ExampleCall = None,
    longest_redelivery: Redelivery = None,
    module: Modules = None,
    output: Output = None,
    html: Html = None,
    check: Check = None,
    since: Since = "30 days",
    database: GuardDatabase = None,
    schema: Schema = None,
) -> None:
    """Write the one-page note on a guarded job, from its code and from measured run times.

    Without --database nothing is measured, and the note says so. With --check the exit code is 1 where the code has changed
    since, or where the lease no longer covers the measured runs; figures that change from day to day are not compared.

    Example: semel note shop.jobs:charge_order --output docs/charge-order.md
    """
    from semel.note.markdown import to_markdown

    origin = _origin(target, check, example, longest_redelivery, module)
    page, uncovered = _write(origin, database, schema, since)
    if check is not None:
        _compare(check, page, uncovered)
        return
    if html is not None:
        from semel.note.html import to_html

        _store(html, to_html(page))
    if output is not None:
        _store(output, to_markdown(page))
    if output is None and html is None:
        typer.echo(to_markdown(page), nl=False)


def _origin(
    target: str | None,
    check: Path | None,
    example: str | None,
    redelivery: str | None,
    modules: list[str] | None,
) -> Origin:
    from semel.errors import ConfigurationError
    from semel.note.origin import Origin, read_origin

    written = None if check is None else read_origin(_read(check))
    if target is None and written is None:
        raise ConfigurationError(
            "No job was named." if check is None else f"{check} is no note that semel wrote.",
            remedy="Write: semel note shop.jobs:charge_order",
        )
    told: dict[str, Any] = {}
    if example is not None:
        told["example"] = _arguments(example)
    if redelivery is not None:
        told["longest_redelivery"] = redelivery
    if modules:
        told["modules"] = tuple(modules)
    base = (
        written if written is not None and target in (None, written.target) else Origin(target=target or "")
    )
    return Origin(
        target=base.target,
        example=told.get("example", base.example),
        longest_redelivery=told.get("longest_redelivery", base.longest_redelivery),
        modules=told.get("modules", base.modules),
    )


def _arguments(text: str) -> dict[str, Any]:
    from semel.errors import ConfigurationError

    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(
            f"--example is no JSON: {error}.", remedy="""Such as '{"order_id": 7}'."""
        ) from error
    if not isinstance(found, dict):
        raise ConfigurationError("--example is no JSON object.", remedy="""Such as '{"order_id": 7}'.""")
    return found


def _write(origin: Origin, database: str | None, schema: str | None, since: str) -> tuple[Page, bool]:
    """The page, and whether the lease does not cover what was measured."""
    from semel.cli.guard_place import open_guard
    from semel.cli.place import load
    from semel.core.durations import to_timedelta
    from semel.note.measured import is_covered
    from semel.note.writing import find_subject_of, measure, write_note

    found: object = load(origin.target, object, "guarded function")
    declaration = find_subject_of(origin, found).guarded.declaration
    measurement = None
    if database:
        within = to_timedelta(since, name="--since")
        with open_guard(database, schema) as session:
            measurement = measure(session, declaration.job_type, within=within)
    uncovered = measurement is not None and not is_covered(declaration, measurement.runs)
    return write_note(origin, found, measurement), uncovered


def _compare(path: Path, page: Page, uncovered: bool) -> None:
    from semel.note.checking import compare_to

    difference = compare_to(path.name, _read(path), page)
    if difference:
        typer.echo(difference)
        typer.echo(f"{path} is not current. Write it anew, and read what changed.", err=True)
    if uncovered:
        typer.echo(
            "The lease no longer covers the measured runs (the part of the note that is measured).", err=True
        )
    if difference or uncovered:
        raise typer.Exit(NOT_SO)
    typer.echo(f"{path} is current.")


def _read(path: Path) -> str:
    from semel.errors import ConfigurationError

    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", remedy="Write it: --output"
        ) from error


def _store(path: Path, text: str) -> None:
    from semel.errors import ConfigurationError

    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}.", remedy="Make its folder, or name another."
        ) from error
    typer.echo(f"Written: {path}")
