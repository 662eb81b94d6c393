"""What a line says: CSV, JSON, logfmt, or a pattern with names, each as (line number, reference's parts, time)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from semel.errors import ConfigurationError
from semel.repeats.problems import Problems

Found = tuple[int, tuple[str, ...], str]
_PAIR = re.compile(r'([^\s="]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r"}.get


@dataclass(frozen=True, slots=True)
class Block:
    """Records of one line each, by columns: the reference's parts, and the times."""

    first_line: int
    references: tuple[list[str], ...]
    times: list[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names of what is wanted of each record."""

    references: tuple[str, ...]
    time: str

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.references, self.time)


def read_json(lines: Iterator[str], wanted: Wanted, problems: Problems) -> Iterator[Found]:
    """One JSON object a line. Names go down with dots; a key that has the dots itself comes first."""
    decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).decode
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            record = decode(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            problems.add("not-json", number)
            continue
        values = [_walk(record, name) for name in wanted.names]
        if any(isinstance(value, dict | list) for value in values):
            problems.add("no-scalar", number)
            continue
        *parts, time = (_scalar(value) for value in values)
        yield number, tuple(parts), time


def read_logfmt(lines: Iterator[str], wanted: Wanted, problems: Problems) -> Iterator[Found]:
    """``key=value key="a value"``; a key that comes twice counts as it comes last."""

    def pairs(line: str) -> Mapping[str, str]:
        return {
            key: bare or (_ESCAPED.sub(lambda found: _PLAIN(found[1]) or found[1], quoted) if quoted else "")
            for key, quoted, bare in _PAIR.findall(line)
        }

    return _read_by(pairs, lines, wanted, problems)


def read_pattern(pattern: str, lines: Iterator[str], wanted: Wanted, problems: Problems) -> Iterator[Found]:
    """By the names of a regular expression, found anywhere in a line."""
    compiled = compile_pattern(pattern, wanted)

    def groups(line: str) -> Mapping[str, str | None] | None:
        found = compiled.search(line)
        return None if found is None else found.groupdict()

    return _read_by(groups, lines, wanted, problems)


def compile_pattern(pattern: str, wanted: Wanted) -> re.Pattern[str]:
    """The expression, which must have every name that is wanted."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(
            f"--pattern is no regular expression: {error}.",
            remedy=r"For example '^(?P<time>\S+) .* order=(?P<order>\S+)'.",
        ) from error
    missing = [name for name in wanted.names if name not in compiled.groupindex]
    if missing:
        raise ConfigurationError(
            f"--pattern has no group named {missing[0]!r}.",
            remedy=f"Write (?P<{missing[0]}>…) where it stands; it has: {', '.join(compiled.groupindex) or 'none'}.",
        )
    return compiled


def _read_by(
    take: Callable[[str], Mapping[str, str | None] | None],
    lines: Iterator[str],
    wanted: Wanted,
    problems: Problems,
) -> Iterator[Found]:
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        values = take(line)
        if values is None or not values:
            problems.add("no-match", number)
            continue
        yield (
            number,
            tuple(values.get(name) or "" for name in wanted.references),
            values.get(wanted.time) or "",
        )


def _walk(record: dict[str, Any], path: str) -> Any:
    if path in record:
        return record[path]
    found: Any = record
    for part in path.split("."):
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def _scalar(value: Any) -> str:
    """As JSON writes it, which is as it stands in the file but for texts."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
