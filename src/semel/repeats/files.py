"""Reads a file of deliveries and finds what repeats in it, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from semel.core.past import AFTER_ALL_MS, BEFORE_ALL_MS, Past
from semel.core.zones import Zone
from semel.errors import ConfigurationError
from semel.repeats.formats import Block, Found, Wanted, read_json, read_logfmt, read_pattern
from semel.repeats.lines import Text, open_text, read_lines
from semel.repeats.problems import Problems
from semel.repeats.tables import read_table, sniff_delimiter
from semel.repeats.times import Clock
from semel.store.past.scratch import open_scratch
from semel.store.past.sieve import Deliveries

FORMATS: Final = ("csv", "jsonl", "logfmt", "pattern")
_AT_ONCE: Final = 512
_COMPRESSED: Final = (".gz", ".zst", ".bz2", ".xz")


@dataclass(frozen=True, slots=True)
class File:
    """A file, what is wanted of it, and how it is to be read where that cannot be told from itself."""

    path: str
    wanted: Wanted
    format: str | None = None
    pattern: str | None = None
    delimiter: str | None = None
    header: bool = True
    encoding: str | None = None
    zone: Zone | None = None
    unit: str | None = None
    time_format: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


def find_in_file(file: File, *, most_listed: int) -> tuple[Past, Problems]:
    """What repeats in the file, and what is wrong with it."""
    problems = Problems()
    with open_text(file.path, file.encoding) as text, open_scratch(len(file.wanted.references)) as scratch:
        found = _found(file, text, read_lines(text, problems), problems)
        scratch.add(deliveries(found, file, problems))
        past = scratch.find_repeats(most_listed=most_listed)
    rows = past.counts.deliveries + problems.refused - problems.count(["outside"])
    counts = replace(
        past.counts,
        rows=rows,
        without_reference=problems.count(["no-reference"]),
        without_time=problems.count(["no-time"]),
        unreadable_time=problems.count(["time-unreadable"]),
    )
    return replace(past, counts=counts), problems


def deliveries(found: Iterator[Found | Block], file: File, problems: Problems) -> Iterator[Deliveries]:
    """What can be counted, some at a time; the rest is told to ``problems``."""
    clock = Clock(problems, file.zone, file.unit, file.time_format)
    since = BEFORE_ALL_MS if file.since_ms is None else file.since_ms
    until = AFTER_ALL_MS if file.until_ms is None else file.until_ms
    kept: list[tuple[Any, ...]] = []
    for some in found:
        if isinstance(some, Block):
            moments = clock.read_block(some.times, some.first_line) if _has_all(some) else None
            if moments is not None and since <= min(moments) and max(moments) < until:
                yield Deliveries(tuple(map(_all_storable, some.references)), moments)
                continue
            one_by_one = _records_of(some)
        else:
            one_by_one = iter((some,))
        for line, reference, time in one_by_one:
            moment = _moment(clock, line, reference, time)
            if moment is None:
                continue
            if since <= moment < until:
                kept.append((*map(_storable, reference), moment))
            else:
                problems.add("outside", line)
        if len(kept) >= _AT_ONCE:
            yield _by_columns(kept)
            kept = []
    if kept:
        yield _by_columns(kept)


def _by_columns(rows: list[tuple[Any, ...]]) -> Deliveries:
    *references, times = (list(column) for column in zip(*rows, strict=True))
    return Deliveries(tuple(references), times)


def _moment(clock: Clock, line: int, reference: tuple[str, ...], time: str) -> int | None:
    """When it was delivered; None, and told, where it cannot be counted."""
    if "" in reference:
        clock.problems.add("no-reference", line)
    elif not time:
        clock.problems.add("no-time", line)
    else:
        try:
            return clock.read(time, line)
        except (ValueError, OverflowError):
            clock.problems.add("time-unreadable", line, time[:40])
    return None


def _records_of(block: Block) -> Iterator[Found]:
    references = zip(*block.references, strict=True)
    return zip(count(block.first_line), references, block.times)


def _has_all(block: Block) -> bool:
    return not any("" in column for column in block.references)


def _all_storable(column: list[str]) -> list[Any]:
    return column if "".join(column).isascii() else [_storable(part) for part in column]


def _storable(text: str) -> str | bytes:
    """As text where it is; else by its bytes, so that what differs stays different."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return text.encode("utf-8", "surrogatepass")
    return text


def _found(file: File, text: Text, lines: Iterator[str], problems: Problems) -> Iterator[Found | Block]:
    kind = file.format or _format_of(file, text.head)
    if kind == "csv":
        delimiter = file.delimiter or sniff_delimiter(text.head)
        return read_table(lines, file.wanted, problems, delimiter=delimiter, header=file.header)
    if kind == "jsonl":
        return read_json(lines, file.wanted, problems)
    if kind == "logfmt":
        return read_logfmt(lines, file.wanted, problems)
    if file.pattern is None:
        raise ConfigurationError("--format pattern needs --pattern.", remedy="Give the expression.")
    return read_pattern(file.pattern, lines, file.wanted, problems)


def _format_of(file: File, head: str) -> str:
    """By what was asked for, by the file's name, by how it begins."""
    if file.pattern is not None:
        return "pattern"
    if file.delimiter is not None or not file.header:
        return "csv"
    path = Path(file.path)
    suffix = (path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path).suffix.lower()
    named = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".logfmt": "logfmt"}.get(
        suffix
    )
    if named is not None:
        return named
    first = head.lstrip("\r\n\t ").split("\n", 1)[0]
    if first.startswith("{"):
        return "jsonl"
    if all(f"{name}=" in first for name in file.wanted.names):
        return "logfmt"
    if all(name in first for name in file.wanted.names):
        return "csv"
    raise ConfigurationError(
        f"{file.path!r}: its first line does not tell what it is.",
        remedy="Say --format csv, jsonl or logfmt, or give --pattern with named groups.",
    )
