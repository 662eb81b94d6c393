"""Options of the commands about operations, and how one operation is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import parse_when

if TYPE_CHECKING:
    from datetime import timedelta

    from semel.core.operation_report import OperationFilter
    from semel.core.operations import State
    from semel.store.run import Session

JobType = Annotated[
    str | None, typer.Option("--job-type", "-t", metavar="NAME", help="Only this type of operation.")
]
InScope = Annotated[
    str | None, typer.Option("--scope", metavar="NAME", help="Only this scope, such as a tenant.")
]
Label = Annotated[str | None, typer.Option("--label", "-l", metavar="TEXT", help="Only with this label.")]
ChangedBefore = Annotated[
    str | None,
    typer.Option("--older", metavar="AGE", help='Last changed longer ago: "2 h", or before a date.'),
]
ChangedAfter = Annotated[
    str | None, typer.Option("--newer", metavar="AGE", help='Last changed since: "2 h" ago, or since a date.')
]
Reason = Annotated[
    str,
    typer.Option(
        "--reason", "--why", "-m", metavar="TEXT", help="How you know, for the record.", show_default=False
    ),
]
What = Annotated[
    list[str],
    typer.Argument(
        metavar="OPERATION",
        help="Its id, label or key; with --job-type, the parts of its key.",
        show_default=False,
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option("--state", "-s", metavar="STATE", help="claimed, released, completed, held."),
]


def parse_states(names: list[str] | None) -> frozenset[State]:
    """States by name, also several with commas between them."""
    from semel.core.operations import State
    from semel.errors import ConfigurationError

    words = [word.strip() for name in names or () for word in name.split(",") if word.strip()]
    known = {state.value for state in State}
    for word in words:
        if word not in known:
            raise ConfigurationError(f"{word!r} is not a state.", remedy=f"One of: {', '.join(State)}.")
    return frozenset(State(word) for word in words)


def build_operation_filter(
    states: frozenset[State],
    job_type: str | None,
    scope: str | None,
    label: str | None,
    changed: tuple[str | None, str | None],
    idle: timedelta | None = None,
) -> OperationFilter:
    """What the options of a filter ask for."""
    from semel.core.operation_report import OperationFilter

    return OperationFilter(
        states=states,
        job_type=job_type,
        scope=scope,
        label=label,
        changed_before=parse_when(changed[0], "--older"),
        changed_after=parse_when(changed[1], "--newer"),
        idle=idle,
    )


def find_id(session: Session, words: list[str], job_type: str | None, scope: str | None) -> int:
    """The id of the operation that the words mean: an id; a label; a key, computed or as its parts.

    With a job type, digits are a label or key too, not an id. Raises NotFound, and ConfigurationError where there
    are several.
    """
    from semel.core.operation_report import is_key
    from semel.errors import NotFound

    if len(words) == 1 and words[0].isdecimal() and len(words[0]) < 19 and job_type is None:
        return int(words[0])
    ids: list[int] = []
    if len(words) == 1:
        which = {"key": words[0]} if is_key(words[0]) else {"label": words[0]}
        ids = _look(session, job_type, scope, **which)
    if not ids and job_type is not None:
        from semel.core.key_words import read_keys

        for key in read_keys(words):
            ids = _look(session, job_type, scope, key=key)
            if ids:
                break
    if not ids:
        kind = "" if job_type is None else f" of {job_type}"
        raise NotFound(
            f"There is no operation {' '.join(words)}{kind}.",
            remedy="See: semel operations list. For the parts of a key, say --job-type."
            if job_type is None
            else f"See: semel operations list --job-type {job_type}",
        )
    return _only(ids, words)


def _look(
    session: Session,
    job_type: str | None,
    scope: str | None,
    *,
    label: str | None = None,
    key: str | None = None,
) -> list[int]:
    from semel.core.operation_report import OperationFilter
    from semel.store.guard_views import list_operations
    from semel.store.run import run

    wanted = OperationFilter(job_type=job_type, scope=scope, label=label, key=key)
    return [one.id for one in run(list_operations(wanted, limit=10), session).operations]


def _only(ids: list[int], words: list[str]) -> int:
    from semel.errors import ConfigurationError

    if len(ids) > 1:
        raise ConfigurationError(
            f"Several operations are called {' '.join(words)}: {', '.join(map(str, ids))}.",
            remedy="Name one by its id, or say --job-type and --scope.",
        )
    return ids[0]
