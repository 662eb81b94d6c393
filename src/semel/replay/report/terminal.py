"""The table in the terminal: a line for each check, and under it why it does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from semel.replay.report.wording import (
    NONE,
    counted_words,
    expected_words,
    outcome,
    record_words,
    verdict_word,
)
from semel.replay.results import CheckResult, CodeRun, Run, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_COLOURS: Final[Mapping[Verdict, str]] = MappingProxyType(
    {
        Verdict.HOLDS: "green",
        Verdict.FAILS: "bold red",
        Verdict.VACUOUS: "bold yellow",
        Verdict.SKIPPED: "dim",
    }
)
_LINES: Final = 3
"""Of a reason in full."""
_ABOVE: Final = 2
"""Lines of a table before its first row."""


def print_run(run: Run, console: Console) -> None:
    """Print it: what was run, the table, and the outcome in a sentence."""
    from rich.text import Text

    for each in run.runs:
        console.print(Text(f"{each.label or 'code'}: {_printable(each.code)}"), soft_wrap=True)
    lines = _lines(_table(run), console)
    for line in lines[:_ABOVE]:
        console.print(Text.from_ansi(line), soft_wrap=True)
    for line, name in zip(lines[_ABOVE:], _names(run), strict=True):
        console.print(Text.from_ansi(line), soft_wrap=True)
        for reason in _reasons(run, name):
            console.print(Text(f"    {_printable(_shortened(reason))}", style="dim"), soft_wrap=True)
    console.print()
    console.print(Text(_printable(run.expectations), style="dim"), soft_wrap=True)
    console.print(Text(outcome(run), style="bold"), soft_wrap=True)


def _lines(table: Table, console: Console) -> list[str]:
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def _table(run: Run) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("check", "expected"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for each in run.runs:
        mark = f"{each.label}: " if len(run.runs) > 1 else ""
        for heading in ("counted", "record", "verdict"):
            table.add_column(f"{mark}{heading}", no_wrap=True, overflow="ellipsis")
    table.add_column("seconds", justify="right", no_wrap=True)
    for name in _names(run):
        found = [_check(each, name) for each in run.runs]
        known = next((check.expected for check in reversed(found) if check and check.expected), None)
        cells = [Text(name), Text(expected_words(known))]
        for check in found:
            cells += _cells(check)
        took = sum(check.seconds for check in found if check)
        table.add_row(*cells, Text(f"{took:.1f}"))
    return table


def _cells(check: CheckResult | None) -> list[Text]:
    from rich.text import Text

    if check is None:
        return [Text(NONE)] * 3
    return [
        Text(counted_words(check.evidence)),
        Text(_printable(record_words(check.evidence))),
        Text(verdict_word(check.verdict), style=_COLOURS[check.verdict]),
    ]


def _names(run: Run) -> list[str]:
    """Every check once, in the order in which they were done."""
    return list(dict.fromkeys(check.name for each in run.runs for check in each.checks))


def _check(each: CodeRun, name: str) -> CheckResult | None:
    return next((check for check in each.checks if check.name == name), None)


def _reasons(run: Run, name: str) -> Iterator[str]:
    for each in run.runs:
        check = _check(each, name)
        mark = f"{each.label}: " if len(run.runs) > 1 else ""
        for reason in check.reasons if check else ():
            yield f"{mark}{reason}"


def _shortened(reason: str) -> str:
    """Of a reason with a log or a traceback in it, the first line and the last one; the whole is in the other reports."""
    lines = [line for line in reason.splitlines() if line.strip()]
    return f"{lines[0]} … {lines[-1].strip()}" if len(lines) > _LINES else " ".join(lines)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
