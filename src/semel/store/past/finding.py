"""Asks a table what repeats in it: seven statements of the same moment, which bring groups and never the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from semel.core.past import Bucket, Counts, GapGroup, Past, RepeatedReference
from semel.store.past.reading import Reader, opening
from semel.store.past.writing import STATEMENTS, HistoryTable, comment_of, written_out
from semel.store.statement import Rows

MOST_TIMES: Final = 21
"""So many times are brought of each listed reference."""
MOST_BUCKETS: Final = 600_000
"""Over a year of minutes."""
MINUTE_MS: Final = 60_000


def find_repeats(reader: Reader, table: HistoryTable, *, most_listed: int) -> Past:
    """All that is told of a table's repeats."""
    return Past(
        counts=count(reader, table),
        listed=list_repeats(reader, table, most_listed),
        gaps=group_gaps(reader, table),
        **group_by_time(reader, table),
    )


def script(table: HistoryTable, timeout: timedelta, *, most_listed: int) -> str:
    """The same statements, to be run by hand: each under its comment, with the values in their places."""
    values = {
        **table.values,
        "most_listed": most_listed,
        "most_times": MOST_TIMES,
        "step_ms": MINUTE_MS,
        "most_buckets": MOST_BUCKETS + 1,
    }
    begin = [f"{text};\n" for text in opening(table.dialect, table.zone, timeout)]
    asked = [f"{comment_of(name)}{written_out(table.pieces(name), values).strip()};\n" for name in STATEMENTS]
    return "\n".join(("".join(begin), *asked, "ROLLBACK;\n"))


def count(reader: Reader, table: HistoryTable) -> Counts:
    """How much there is, how much of it counts, how much repeats."""
    ((rows, without_reference, without_time, unreadable),) = _ask(reader, table, "count_rows")
    ((deliveries, repeated, repeats, first, last),) = _ask(reader, table, "count_repeats")
    return Counts(
        rows=int(rows),
        without_reference=int(without_reference),
        without_time=int(without_time),
        unreadable_time=int(unreadable),
        deliveries=int(deliveries),
        repeated_references=int(repeated),
        repeats=int(repeats),
        first_ms=None if first is None else int(first),
        last_ms=None if last is None else int(last),
    )


def list_repeats(reader: Reader, table: HistoryTable, most: int) -> tuple[RepeatedReference, ...]:
    """The references that came most often, with their first times."""
    width = len(table.references)
    times: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in _ask(reader, table, "list_times", most_listed=most, most_times=MOST_TIMES):
        times[tuple(row[:width])].append(int(row[width]))
    listed = []
    for row in _ask(reader, table, "list_repeats", most_listed=most):
        deliveries, first, last, shortest, longest = (int(figure) for figure in row[width:])
        reference = tuple(to_text(part, plain=table.plain) for part in row[:width])
        known = tuple(times[tuple(row[:width])])
        listed.append(RepeatedReference(reference, deliveries, first, last, shortest, longest, known))
    return tuple(listed)


def group_gaps(reader: Reader, table: HistoryTable) -> tuple[GapGroup, ...]:
    """All gaps, those that are about the same together."""
    return tuple(GapGroup(*(int(figure) for figure in row)) for row in _ask(reader, table, "group_gaps"))


def group_by_time(reader: Reader, table: HistoryTable) -> dict[str, Any]:
    """Deliveries and repeats by the minute; in longer steps where there are too many minutes."""
    step = MINUTE_MS
    while True:
        rows = _ask(reader, table, "group_activity", step_ms=step, most_buckets=MOST_BUCKETS + 1)
        if len(rows) <= MOST_BUCKETS:
            break
        step *= 10
    return {"buckets": to_buckets(rows, reader, table, step), "step_ms": step}


def to_buckets(
    activity: Rows | Sequence[tuple[int, int]], reader: Reader, repeated: HistoryTable, step_ms: int
) -> tuple[Bucket, ...]:
    """The activity, with the repeats that are in it."""
    repeats = {int(row[0]): row for row in _ask(reader, repeated, "group_repeats", step_ms=step_ms)}
    nothing = (0, 0, 0)
    return tuple(
        Bucket(int(start), int(deliveries), *(int(figure) for figure in repeats.get(int(start), nothing)[1:]))
        for start, deliveries in activity
    )


def to_text(value: object, *, plain: bool = False) -> str:
    """A reference as it is shown: bytes that are no UTF-8 in hexadecimal, or within a file's text by themselves."""
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("utf-8", "backslashreplace") if plain else f"0x{raw.hex()}"
    return str(value)


def _ask(reader: Reader, table: HistoryTable, name: str, **values: int) -> Rows:
    given: Mapping[str, int] = {**table.values, **values}
    return reader.rows(table.pieces(name), given)
