"""How things are printed: JSON of a stable shape, tables, times in the person's zone with their age."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import typer


def print_json(value: object) -> None:
    """``value`` as JSON: times as ISO 8601 in UTC, durations as seconds."""
    typer.echo(json.dumps(value, default=_plain, indent=2, ensure_ascii=False))


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table as wide as the terminal; elsewhere, as wide as it needs. Nothing in it is taken as markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [tuple(row) for row in rows]
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, heading in enumerate(headings):
        numbers = bool(listed) and all(_is_number(row[place]) for row in listed)
        table.add_column(heading, justify="right" if numbers else "left", overflow="ellipsis", no_wrap=True)
    for row in listed:
        table.add_row(*(Text(_printable(cell)) for cell in row))
    wide = None if sys.stdout.isatty() else 1_000
    Console(width=wide, file=sys.stdout, highlight=False).print(table)


def _is_number(text: str) -> bool:
    return text == "" or text.replace(",", "").isdigit()


def _printable(text: str) -> str:
    """One line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def printable_lines(text: str) -> str:
    """Several lines, such as a traceback, without what a terminal would obey."""
    return "\n".join(_printable(line.expandtabs(4)) for line in text.splitlines())


def age(duration: timedelta) -> str:
    """The largest unit of a duration, as people say it: "3 s", "5 min", "2 h", "9 days"."""
    seconds = abs(duration.total_seconds())
    for size, unit in ((86_400, "day"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}"
    return f"{seconds:.0f} s" if seconds >= 1 or not seconds else "<1 s"


def ago(instant: datetime, now: datetime) -> str:
    """How far off it is: "3 min ago", "in 2 h"."""
    return f"in {age(instant - now)}" if instant > now else f"{age(now - instant)} ago"


def moment(instant: datetime | None, now: datetime) -> str:
    """A time in this machine's zone, with how far off it is."""
    if instant is None:
        return "-"
    if instant in (
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
    ):  # past what a date can be here
        return "never" if instant.year > 1 else "always"
    return f"{instant.astimezone():%Y-%m-%d %H:%M:%S %Z} ({ago(instant, now)})"


@contextmanager
def progress_bar(label: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr for work that reports (done, total); None where nobody watches."""
    with named_progress_bar(quiet=quiet) as advance:
        yield None if advance is None else lambda done, total: advance(label, done, total)


@contextmanager
def named_progress_bar(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on stderr for work in parts, which reports (part, done, total); None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda part, done, total: shown.update(task, description=part, completed=done, total=total)
