"""What the demonstration promised, held against its figures."""

from __future__ import annotations

from collections.abc import Iterator

from semel.cli.demonstration.figures import Figures, UserFigures
from semel.errors import SemelError

TAKEOVER_SLACK = 30.0
"""Seconds over the lease that a very busy machine may need to start the other worker; at rest it needs none."""

NOT_GUARANTEED = (
    "That an email is sent once. A mail server accepts a message, and the worker dies before it has written that "
    "down: the next attempt sends it again, and no queue can know. The guard is for that: see the second act.",
    "When an email arrives: a refused one waits for its backoff, one whose worker died for its lease.",
)


class PromiseBroken(SemelError):
    """The demonstration did not go as promised."""

    code = "demo"


def broken_promises(figures: Figures) -> list[str]:
    """Every expectation that failed, as a sentence; empty when all is as promised."""
    return [*_of_sign_ups(figures), *_of_recovery(figures), *_of_records(figures)]


def _of_sign_ups(figures: Figures) -> Iterator[str]:
    if figures.rolled_back != 1 or figures.traces_of_rolled_back:
        yield (
            f"One sign-up was rolled back and must leave nothing: {figures.rolled_back} are missing, "
            f"{figures.traces_of_rolled_back} traces were found."
        )
    if figures.jobs != figures.users or len(figures.user_list) != figures.users:
        yield f"Each of {figures.users} users must have one job: there are {figures.jobs}."
    if figures.jobs_done != figures.jobs:
        yield f"All {figures.jobs} jobs must end done: {figures.jobs_done} did."
    for user in figures.user_list:
        if user.accepted < 1:
            yield f"{user.email} signed up, and no message to it was accepted."
        if user.accepted > 1 + user.crashes:
            yield f"{user.email} got {user.accepted} messages; a kill explains {1 + user.crashes} at most."
        if user.message_ids > 1:
            yield f"Messages to {user.email} carried {user.message_ids} different Message-IDs."


def _of_recovery(figures: Figures) -> Iterator[str]:
    if not figures.killed_processes or not figures.running_at_kill:
        yield "The worker must be killed while jobs run; none ran."
    if figures.recovered != figures.running_at_kill:
        yield f"{figures.running_at_kill} jobs ran at the kill, and {figures.recovered} of them were recovered."
    took, lease = figures.takeover_seconds, figures.lease_seconds
    if took is None or took > lease + TAKEOVER_SLACK:
        yield f"Another worker must take over after the lease of {lease:g} s; it took {took} s."
    if not figures.dead_letters or figures.requeued_and_done != figures.dead_letters:
        yield (
            f"A job must become a dead letter, be re-queued and end done: {figures.dead_letters} did become one, "
            f"{figures.requeued_and_done} ended done."
        )
    if figures.worker_exit_code != 0:
        yield f"The second worker must stop with exit code 0; it was {figures.worker_exit_code}."


def _of_records(figures: Figures) -> Iterator[str]:
    """The jobs' table and the mail server kept their books apart; they must tell the same."""
    for user in figures.user_list:
        yield from _of_one_record(user)
    if not figures.messages_refused:
        yield "The mail server must refuse some attempts; it refused none."


def _of_one_record(user: UserFigures) -> Iterator[str]:
    """A run that was cut off may have had its verdict; every other run had exactly one."""
    errors = user.attempts - (user.status == "done")
    if not errors <= user.refused <= errors + user.crashes:
        yield (
            f"The table says that {errors} attempts for {user.email} failed, the mail server that it refused "
            f"{user.refused}."
        )
