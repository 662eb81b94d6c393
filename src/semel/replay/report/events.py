"""The log of a check's deliveries, as the page shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from semel.replay.events import Event
from semel.replay.report.markup import Markup, join, table, tag
from semel.replay.report.wording import verdict_word
from semel.replay.results import CheckResult

_MOST: Final = 200
"""Events that are shown of one check."""
_LINES: Final = 40
"""Lines that are shown of one log."""


def trouble_of(check: CheckResult, label: str) -> Markup:
    """A check that does not hold: why, what its deliveries did in order, and the end of the workers' logs."""
    title = f"{check.name}{f', code {label}' if label else ''}: {verdict_word(check.verdict)}"
    return tag(
        "section",
        tag("h2", title),
        tag("p", check.title),
        tag("ul", *(tag("li", reason) for reason in check.reasons)),
        _events(check.evidence.events),
        *(_log(text) for text in check.evidence.logs),
        class_="trouble",
    )


def _events(events: list[Event]) -> Markup:
    if not events:
        return tag("p", "No delivery reported anything.")
    ordered = sorted(events, key=lambda event: event.at)
    headings = ("After", "Operation", "Delivery", "Process", "Point", "")
    rest = len(ordered) - _MOST
    more = tag("p", f"{rest:,} more are in the JSON.") if rest > 0 else ""
    return join([tag("h3", "Deliveries"), table(headings, _rows(ordered[:_MOST]), class_="events"), more])


def _rows(events: list[Event]) -> Iterator[list[object]]:
    start = events[0].at
    for event in events:
        detail = ", ".join(f"{name} {value}" for name, value in event.detail.items())
        arguments = f"arguments {event.digest[:8]}" if event.digest else ""
        yield [
            tag("td", f"{(event.at - start) * 1000:,.1f} ms", class_="number"),
            "" if event.operation is None else event.operation,
            event.delivery,
            event.pid,
            tag("td", tag("b", event.point.value)),
            "; ".join(part for part in (arguments, detail) if part),
        ]


def _log(text: str) -> Markup:
    lines = text.splitlines()
    return join([tag("h3", "End of the worker's log"), tag("pre", "\n".join(lines[-_LINES:]))])
