"""The demonstration while it runs: a live picture on a terminal, plain lines elsewhere, nothing for JSON."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from semel.cli.demonstration.figures import View
from semel.core.states import Status

CONDITIONS: Final = ("due", "delayed", "retrying", "running", "expired", "failed", "held", "done")
EVENTS: Final = 12
_PLAIN_EVERY: Final = 2.0


class Screen(Protocol):
    """Where the story is told."""

    def say(self, sentence: str) -> None: ...
    def show(self, view: View, name: str, verdicts: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Silent:
    """Says nothing."""

    def say(self, sentence: str) -> None:
        """Nothing."""

    def show(self, view: View, name: str, verdicts: str) -> None:
        """Nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close."""


class Plain(Silent):
    """A line for each event, and the counts every two seconds where they changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._shown_at = 0.0
        self._shown = ""

    def say(self, sentence: str) -> None:
        self._console.print(
            f"{time.monotonic() - self._began:5.1f} s  {sentence}", markup=False, soft_wrap=True
        )

    def show(self, view: View, name: str, verdicts: str) -> None:
        line = f"jobs: {_counts(view)} · {name}: {verdicts}"
        if time.monotonic() - self._shown_at >= _PLAIN_EVERY and line != self._shown:
            self._shown_at, self._shown = time.monotonic(), line
            self.say(f"       {line}")


class Picture:
    """Rich's live display: the events, and below them the jobs as they are now."""

    def __init__(self, console: Console) -> None:
        self._began = time.monotonic()
        self._events: deque[tuple[float, str]] = deque(maxlen=EVENTS)
        self._now: RenderableType = Text("")
        self._live = Live(console=console, refresh_per_second=8, get_renderable=self._draw)

    def say(self, sentence: str) -> None:
        self._events.append((time.monotonic() - self._began, sentence))

    def show(self, view: View, name: str, verdicts: str) -> None:
        done = len(view.having(Status.DONE)) + len(view.having(Status.HELD))
        counts = Table.grid(padding=(0, 2))
        counts.add_row(
            "jobs", ProgressBar(total=len(view.jobs) or 1, completed=done, width=30), _counts(view)
        )
        counts.add_row(name, "", verdicts)
        self._now = counts

    def _draw(self) -> RenderableType:
        events = Table.grid(padding=(0, 2))
        events.add_column(justify="right", style="dim", no_wrap=True)
        events.add_column()
        for at, sentence in tuple(self._events):
            events.add_row(f"{at:.1f} s", Text(sentence))
        return Group(events, Text(""), self._now)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


def choose_screen(console: Console, *, silent: bool) -> Screen:
    """What fits where the output goes."""
    if silent:
        return Silent()
    return Picture(console) if console.is_terminal else Plain(console)


def _counts(view: View) -> str:
    return (
        ", ".join(f"{view.conditions[name]} {name}" for name in CONDITIONS if view.conditions[name]) or "none"
    )
