"""Options that several commands share, and how their words become values."""

from __future__ import annotations

import getpass
import os
import socket
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from semel.core.report import JobFilter, When
    from semel.core.states import Status

Database = Annotated[
    str | None,
    typer.Option(
        "--database", "-d", envvar="SEMEL_DATABASE_URL", metavar="URL", help="The PostgreSQL to work on."
    ),
]
Schema = Annotated[
    str | None,
    typer.Option("--schema", envvar="SEMEL_SCHEMA", metavar="NAME", help="The schema of the tables [semel]."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; its shape is in docs/cli.md.")]
Who = Annotated[
    str | None,
    typer.Option(
        "--who", metavar="NAME", envvar="SEMEL_WHO", help="Whose act it is, for the record [user@host]."
    ),
]
Why = Annotated[str | None, typer.Option("--why", "-m", metavar="TEXT", help="The reason, for the record.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many.")]
Queue = Annotated[str | None, typer.Option("--queue", "-q", metavar="NAME", help="Only this queue.")]
Kind = Annotated[str | None, typer.Option("--kind", "-k", metavar="NAME", help="Only this kind.")]
ErrorText = Annotated[
    str | None, typer.Option("--error", metavar="TEXT", help="Only with this text in the last error.")
]
Statuses = Annotated[
    list[str] | None,
    typer.Option("--status", "-s", metavar="STATUS", help="pending, running, done, failed, cancelled, held."),
]
Older = Annotated[
    str | None, typer.Option("--older", metavar="AGE", help='Created longer ago: "2 h", or a date and time.')
]
Newer = Annotated[
    str | None, typer.Option("--newer", metavar="AGE", help='Created since: "2 h" ago, or a date and time.')
]
EndedOlder = Annotated[
    str | None, typer.Option("--ended-older", metavar="AGE", help="Ended longer ago, or before a date.")
]
EndedNewer = Annotated[
    str | None, typer.Option("--ended-newer", metavar="AGE", help="Ended since then, or since a date.")
]


UniqueKey = Annotated[str | None, typer.Option("--unique-key", metavar="KEY", help="Only with this key.")]
Ages = tuple[str | None, str | None]
"""An --older and a --newer."""


def build_filter(
    status: list[str] | None,
    queue: str | None,
    kind: str | None,
    error: str | None,
    created: Ages,
    ended: Ages,
    unique_key: str | None = None,
) -> JobFilter:
    """What the options of a filter ask for."""
    from semel.core.report import JobFilter

    return JobFilter(
        statuses=parse_statuses(status),
        queue=queue,
        kind=kind,
        error=error,
        unique_key=unique_key,
        created_before=parse_when(created[0], "--older"),
        created_after=parse_when(created[1], "--newer"),
        finished_before=parse_when(ended[0], "--ended-older"),
        finished_after=parse_when(ended[1], "--ended-newer"),
    )


def parse_when(text: str | None, option: str) -> When | None:
    """An age in words, or a date and time; one without an offset is in this machine's zone."""
    from semel.core.durations import to_timedelta
    from semel.errors import ConfigurationError

    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        try:
            return to_timedelta(text, name=option)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{option} is {text!r}: neither an age nor a date.",
                remedy='For example "90 min", "3 days", 2026-01-31 or 2026-01-31T08:00:00+01:00.',
            ) from error
    return instant.astimezone() if instant.utcoffset() is None else instant


def parse_statuses(names: list[str] | None) -> frozenset[Status]:
    """Statuses by name, also several with commas between them."""
    from semel.core.states import Status
    from semel.errors import ConfigurationError

    words = [word.strip() for name in names or () for word in name.split(",") if word.strip()]
    known = {status.value for status in Status}
    for word in words:
        if word not in known:
            raise ConfigurationError(
                f"{word!r} is not a status.",
                remedy=f"One of: {', '.join(status.value for status in Status)}.",
            )
    return frozenset(Status(word) for word in words)


def name_person(who: str | None) -> str:
    """Who acts, where nobody is named: the user and the machine."""
    if who:
        return who
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
