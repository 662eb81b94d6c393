"""The demo's own judgement: every way in which it can go wrong is noticed and said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from semel.cli.demonstration.figures import Figures, UserFigures
from semel.cli.demonstration.mail_server import ACCEPTED, BUSY, CLOSED, Record
from semel.cli.demonstration.promises import broken_promises


def a_user(**changes: Any) -> UserFigures:
    plain = UserFigures(
        name="Ada",
        email="ada@example.org",
        job=1,
        status="done",
        attempts=2,
        crashes=0,
        refused=1,
        accepted=1,
        message_ids=1,
        dead_letters=0,
    )
    return replace(plain, **changes)


GOOD = Figures(
    seconds=20.0,
    seed=7,
    postgresql="18",
    speed=25,
    lease_seconds=2.4,
    sign_ups=3,
    rolled_back=1,
    traces_of_rolled_back=0,
    users=2,
    jobs=2,
    jobs_done=2,
    attempts=5,
    retries=2,
    killed_processes=2,
    running_at_kill=1,
    recovered=1,
    takeover_seconds=2.5,
    dead_letters=1,
    requeued_and_done=1,
    messages_accepted=3,
    messages_refused=2,
    accepted_twice=1,
    worker_exit_code=0,
    dead_letter_list=[],
    user_list=[a_user(), a_user(email="ken@example.org", job=2, crashes=1, accepted=2)],
)


def with_user(**changes: Any) -> Figures:
    return replace(GOOD, user_list=[a_user(**changes), *GOOD.user_list[1:]])


def test_a_good_run_breaks_nothing() -> None:
    assert broken_promises(GOOD) == []


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (replace(GOOD, traces_of_rolled_back=1), "1 traces were found"),
        (replace(GOOD, rolled_back=0), "must leave nothing"),
        (replace(GOOD, jobs=3, jobs_done=3), "must have one job: there are 3"),
        (replace(GOOD, jobs_done=1), "2 jobs must end done: 1 did"),
        (with_user(accepted=0), "no message to it was accepted"),
        (with_user(accepted=2), "got 2 messages; a kill explains 1 at most"),
        (with_user(message_ids=2), "2 different Message-IDs"),
        (with_user(refused=2), "1 attempts for ada@example.org failed, the mail server that it refused 2"),
        (with_user(refused=0), "the mail server that it refused 0"),
        (replace(GOOD, running_at_kill=0, recovered=0), "must be killed while jobs run"),
        (replace(GOOD, recovered=0), "0 of them were recovered"),
        (replace(GOOD, takeover_seconds=None), "take over after the lease of 2.4 s"),
        (replace(GOOD, takeover_seconds=33.0), "it took 33.0 s"),
        (replace(GOOD, dead_letters=0, requeued_and_done=0), "must become a dead letter"),
        (replace(GOOD, requeued_and_done=0), "0 ended done"),
        (replace(GOOD, worker_exit_code=-9), "exit code 0; it was -9"),
        (replace(GOOD, messages_refused=0), "it refused none"),
    ],
)
def test_what_went_wrong_is_said(figures: Figures, said: str) -> None:
    (sentence,) = broken_promises(figures)
    assert said in sentence


def test_the_same_seed_refuses_the_same_attempts() -> None:
    def verdicts(seed: int) -> list[str]:
        record = Record(seed)
        return [record.judge("ada@example.org", "<1@signup.example>") for _ in range(200)]

    assert verdicts(7) == verdicts(7) != verdicts(8)
    assert set(verdicts(7)) == {ACCEPTED, BUSY}
    assert 60 < verdicts(7).count(BUSY) < 140


def test_a_closed_mailbox_refuses_until_it_is_opened() -> None:
    record = Record(7, closed={"ada@example.org"})
    assert {record.judge("ada@example.org", "") for _ in range(20)} == {CLOSED}
    record.closed.clear()
    assert ACCEPTED in {record.judge("ada@example.org", "") for _ in range(20)}
    assert record.refused("ada@example.org") + record.accepted("ada@example.org") == 40
