from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.durations import LONGEST
from semel.core.outcomes import Cancel, HoldForPerson, JobOutcome, Retry, Snooze
from semel.core.retry import Backoff, Decision, Policy, RetryPolicy, Rule, decide_retry
from semel.core.states import Status
from semel.errors import ConfigurationError

AT = datetime(2026, 1, 2, tzinfo=UTC)


def never() -> float:
    return 0.0


def decide(policy: Policy, exception: BaseException, attempt: int = 1, max_attempts: int = 8) -> Decision:
    return decide_retry(policy, exception, attempt, max_attempts, never)


def test_the_default_backoff_doubles_up_to_an_hour() -> None:
    delays = [Backoff().delay(attempt, never).total_seconds() for attempt in range(1, 14)]
    assert delays == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]


def test_no_base_is_no_delay_however_many_attempts() -> None:
    assert Backoff(base=0).delay(10**6, never) == timedelta(0)
    assert Backoff(factor=10).delay(10**6, never) == timedelta(hours=1)


def test_jitter_is_the_random_share() -> None:
    assert Backoff(base=100, jitter=0.5).delay(1, lambda: 0.5) == timedelta(seconds=75)
    assert Backoff(base=100, jitter=0).delay(1, lambda: 0.9) == timedelta(seconds=100)


@given(
    attempt=st.integers(1, 10**6),
    base=st.floats(0, 1e6),
    factor=st.floats(1, 1e6),
    cap=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
    luck=st.floats(0, 1, exclude_max=True),
)
def test_a_delay_is_bounded_whatever_the_attempt(
    attempt: int, base: float, factor: float, cap: float, jitter: float, luck: float
) -> None:
    backoff = Backoff(base=base, factor=factor, cap=cap, jitter=jitter)
    full = backoff.delay(attempt, never)
    assert timedelta(0) <= full <= timedelta(seconds=cap)
    lowest = timedelta(seconds=full.total_seconds() * (1 - jitter)) - timedelta(microseconds=2)
    assert lowest <= backoff.delay(attempt, lambda: luck) <= full


@pytest.mark.parametrize(
    "settings",
    [
        {"base": -1},
        {"cap": "soon"},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"factor": True},
        {"jitter": 1.1},
        {"jitter": -0.1},
        {"jitter": "half"},
    ],
)
def test_a_bad_backoff_is_refused_by_name(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        Backoff(**settings)


@pytest.mark.parametrize("count", [0, -1, 32_768, True, 1.5, "8"])
def test_a_bad_number_of_attempts_is_refused(count: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_attempts"):
        RetryPolicy(max_attempts=count)


def test_an_error_waits_and_the_last_attempt_fails() -> None:
    policy = RetryPolicy()
    first = decide(policy, ValueError("x"), attempt=7)
    assert (first.status, first.delay, first.refund) == (Status.PENDING, timedelta(seconds=128), False)
    last = decide(policy, ValueError("x"), attempt=8)
    assert (last.status, last.delay) == (Status.FAILED, None)
    assert "attempt 8 of 8" in last.reason
    assert decide(policy, ValueError("x"), attempt=9).status is Status.FAILED


@pytest.mark.parametrize(
    ("action", "status", "delay", "refund"),
    [
        ("fail", Status.FAILED, None, False),
        ("cancel", Status.CANCELLED, None, False),
        ("hold", Status.HELD, None, False),
        (timedelta(seconds=7), Status.PENDING, timedelta(seconds=7), False),
        (Backoff(base="1 min"), Status.PENDING, timedelta(minutes=1), False),
        (Snooze(for_="10 min"), Status.PENDING, timedelta(minutes=10), True),
        (Retry(after=5), Status.PENDING, timedelta(seconds=5), False),
        (Cancel("gone"), Status.CANCELLED, None, False),
        (HoldForPerson("unsure"), Status.HELD, None, False),
        (lambda _exception, _attempt: None, Status.FAILED, None, False),
        (lambda _exception, attempt: timedelta(seconds=attempt), Status.PENDING, timedelta(seconds=1), False),
        (lambda _exception, _attempt: Cancel(), Status.CANCELLED, None, False),
    ],
)
def test_the_actions_of_a_rule(action: Any, status: Status, delay: timedelta | None, refund: bool) -> None:
    decision = decide(RetryPolicy(rules=(Rule(KeyError, action),)), KeyError("x"))
    assert (decision.status, decision.delay, decision.refund) == (status, delay, refund)
    assert decision.reason


def test_the_first_rule_that_matches_decides_and_others_fall_through() -> None:
    policy = RetryPolicy(rules=(Rule(KeyError, "hold"), Rule((LookupError, OSError), "fail")))
    assert decide(policy, KeyError()).status is Status.HELD
    assert decide(policy, IndexError()).status is Status.FAILED
    assert decide(policy, PermissionError()).status is Status.FAILED
    assert decide(policy, ValueError()).status is Status.PENDING


@pytest.mark.parametrize("action", ["explode", None, 5, Snooze, b"fail"])
def test_a_rule_without_a_real_action_is_refused(action: Any) -> None:
    with pytest.raises(ConfigurationError, match="action"):
        Rule(KeyError, action)


@pytest.mark.parametrize("exceptions", [(), "KeyError", (KeyError, 3), int])
def test_a_rule_without_exceptions_is_refused(exceptions: Any) -> None:
    with pytest.raises(ConfigurationError, match="exception class"):
        Rule(exceptions, "fail")


def test_a_custom_policy_decides_but_stays_bounded() -> None:
    def policy(exception: BaseException, attempt: int) -> timedelta | JobOutcome | None:
        return None if isinstance(exception, KeyError) else timedelta(seconds=attempt)

    assert decide(policy, KeyError()).status is Status.FAILED
    assert decide(policy, ValueError(), attempt=3).delay == timedelta(seconds=3)
    assert decide(policy, ValueError(), attempt=8).status is Status.FAILED


@pytest.mark.parametrize("answer", ["soon", 5, object()])
def test_a_policy_that_answers_nonsense_does_not_cost_the_job(answer: Any) -> None:
    decision = decide(lambda _exception, _attempt: answer, ValueError())
    assert decision.delay == timedelta(seconds=2)
    assert "no answer" in decision.reason


def test_a_policy_that_raises_does_not_cost_the_job() -> None:
    def broken(exception: BaseException, attempt: int) -> None:
        raise ZeroDivisionError

    for policy in (broken, RetryPolicy(rules=(Rule(ValueError, broken),))):
        decision = decide(policy, ValueError())
        assert decision.delay == timedelta(seconds=2)
        assert "ZeroDivisionError" in decision.reason


@pytest.mark.parametrize(
    ("wait", "expected"),
    [(timedelta(days=-3), timedelta(0)), (timedelta.max, LONGEST)],
    ids=["past", "for ever"],
)
def test_a_policy_cannot_wait_outside_the_range_of_dates(wait: timedelta, expected: timedelta) -> None:
    assert decide(lambda _exception, _attempt: wait, ValueError()).delay == expected


def test_retry_without_a_time_takes_the_backoff_of_the_policy() -> None:
    policy = RetryPolicy(backoff=Backoff(base=60))
    decision = decide(policy, Retry(reason="not ready"))
    assert decision.delay == timedelta(minutes=1)
    assert "not ready" in decision.reason
    assert decide(policy, Retry(), attempt=8).status is Status.FAILED


def test_retry_with_a_time_is_charged_and_snooze_is_not() -> None:
    assert decide(RetryPolicy(), Retry(at=AT)).run_at == AT
    assert decide(RetryPolicy(), Retry(at=AT), attempt=8).status is Status.FAILED
    assert decide(RetryPolicy(), Retry(after=1), attempt=8).status is Status.FAILED
    snoozed = decide(RetryPolicy(), Snooze(until=AT), attempt=8)
    assert (snoozed.status, snoozed.run_at, snoozed.refund) == (Status.PENDING, AT, True)


def test_an_outcome_of_the_users_own_counts_as_an_error() -> None:
    class Odd(JobOutcome):
        pass

    assert decide(RetryPolicy(), Odd("odd")).delay == timedelta(seconds=2)
    assert decide(RetryPolicy(), Odd("odd"), attempt=8).status is Status.FAILED
