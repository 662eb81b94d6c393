"""The end of a demonstration: the table of users, the figures, and what was not guaranteed."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from semel.cli.demonstration.figures import Figures, UserFigures
from semel.cli.demonstration.promises import NOT_GUARANTEED


def print_report(console: Console, figures: Figures, broken: list[str]) -> None:
    """All of it, for people."""
    console.print(_users(figures))
    console.print(_totals(figures))
    console.print()
    console.print("Not guaranteed", style="bold")
    for sentence in _not_guaranteed(figures):
        console.print(f"  - {sentence}", markup=False)
    console.print()
    if broken:
        console.print("Not as promised", style="bold red")
        for sentence in broken:
            console.print(f"  - {sentence}", markup=False)
    else:
        console.print(
            f"As promised: {figures.users} users, {figures.users} with a message; "
            f"{figures.rolled_back} sign-up taken back, without one. {figures.seconds:.0f} s.",
            style="bold green",
        )


def _users(figures: Figures) -> Table:
    table = Table(
        title="Messages accepted for each user",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("user")
    table.add_column("job", justify="right")
    table.add_column("status")
    for heading in ("attempts", "refused", "accepted"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for user in figures.user_list:
        numbers = (user.attempts + user.crashes, user.refused, user.accepted)
        table.add_row(
            Text(user.name), str(user.job), user.status, *map(str, numbers), Text(", ".join(_events(user)))
        )
    return table


def _events(user: UserFigures) -> Iterator[str]:
    if user.crashes:
        yield "recovered"
    if user.dead_letters:
        yield "dead letter, re-queued"
    if user.accepted > 1:
        yield "sent twice" if user.accepted == 2 else f"sent {user.accepted} times"


def _totals(figures: Figures) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="bold")
    table.add_column()
    for number, meaning in _lines(figures):
        table.add_row(str(number), Text(meaning))
    return table


def _lines(figures: Figures) -> Iterator[tuple[int, str]]:
    yield (
        figures.users,
        f"users, of {figures.sign_ups} sign-ups; {figures.rolled_back} rolled back with its job",
    )
    yield figures.jobs_done, f"jobs done, of {figures.jobs}"
    yield figures.attempts, "attempts, with those that ended with their worker"
    yield figures.retries, "of them retries after an error"
    yield (
        figures.recovered,
        f"recovered after the kill, of {figures.running_at_kill} that ran; "
        f"the first after {figures.takeover_seconds or 0:.1f} s (lease {figures.lease_seconds:g} s)",
    )
    letters = "dead letter" if figures.dead_letters == 1 else "dead letters"
    yield figures.dead_letters, f"{letters}, re-queued by SQL; {figures.requeued_and_done} done after that"
    yield figures.messages_accepted, f"messages accepted, {figures.messages_refused} refused"


def _not_guaranteed(figures: Figures) -> Iterator[str]:
    once, *others = NOT_GUARANTEED
    yield f"{once} Here it happened to {figures.accepted_twice} of {figures.users} users."
    yield from others
