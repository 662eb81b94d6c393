"""When an attempt that raised runs again, and when it gives up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, get_args

from semel.core.durations import LONGEST, Duration, describe, to_timedelta
from semel.core.outcomes import Cancel, HoldForPerson, JobOutcome, Retry, Snooze
from semel.core.states import Status
from semel.errors import ConfigurationError

MOST_ATTEMPTS = 32_767
"""More would be a job that never gives up."""

Random: TypeAlias = Callable[[], float]
"""Uniform in [0, 1), as ``random.random``."""

Answer: TypeAlias = timedelta | JobOutcome | None
"""Wait so long, end like this, or (None) give up."""

CustomPolicy: TypeAlias = Callable[[BaseException, int], Answer]
"""Gets the exception and the number of the attempt, from 1. ``max_attempts`` still ends the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential: ``min(base * factor ** (attempt - 1), cap)``, of which the share ``jitter`` is random."""

    base: Duration = timedelta(seconds=2)
    factor: float = 2
    cap: Duration = timedelta(hours=1)
    jitter: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", to_timedelta(self.base, name="Backoff(base=…)"))
        object.__setattr__(self, "cap", to_timedelta(self.cap, name="Backoff(cap=…)"))
        if not _is_number(self.factor) or not 1 <= self.factor <= 1_000_000:
            raise ConfigurationError(
                f"Backoff(factor=…) is {self.factor!r}: give a number from 1, such as 2."
            )
        if not _is_number(self.jitter) or not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"Backoff(jitter=…) is {self.jitter!r}: give a share from 0 to 1.")

    def delay(self, attempt: int, random: Random) -> timedelta:
        """How long to wait after attempt number ``attempt`` (from 1): uniform in [(1 - jitter) * d, d]."""
        base = to_timedelta(self.base, name="base").total_seconds()
        cap = to_timedelta(self.cap, name="cap").total_seconds()
        try:
            full = min(base * float(self.factor) ** (attempt - 1), cap)
        except OverflowError:
            full = cap if base else 0.0
        return timedelta(seconds=full * (1 - self.jitter * random()))


Action: TypeAlias = Literal["fail", "cancel", "hold"] | Backoff | timedelta | JobOutcome | CustomPolicy
"""``"fail"`` is the dead letter at once; a timedelta or a Backoff waits; an outcome such as
``Snooze(for_="10 min")`` is taken as if the handler had raised it; a callable decides."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do about some exceptions and their subclasses."""

    exceptions: type[BaseException] | tuple[type[BaseException], ...]
    action: Action

    def __post_init__(self) -> None:
        given = self.exceptions if isinstance(self.exceptions, tuple) else (self.exceptions,)
        if not given or not all(isinstance(each, type) and issubclass(each, BaseException) for each in given):
            raise ConfigurationError(
                f"Rule got {self.exceptions!r}: give an exception class, or a tuple of them."
            )
        if isinstance(self.action, str):
            known = self.action in ("fail", "cancel", "hold")
        else:
            known = isinstance(self.action, get_args(Backoff | timedelta | JobOutcome)) or callable(
                self.action
            )
        if not known or isinstance(self.action, type):
            raise ConfigurationError(
                f"Rule got the action {self.action!r}, which is none.",
                remedy='Give "fail", "cancel", "hold", a timedelta, a Backoff, an outcome such as '
                'Snooze(for_="10 min"), or a callable (exception, attempt).',
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The first rule that matches decides; where none does, the backoff up to ``max_attempts``."""

    max_attempts: int | None = None
    """None: as the job or the application says."""
    backoff: Backoff = field(default_factory=Backoff)
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        if self.max_attempts is not None:
            check_max_attempts(self.max_attempts)
        object.__setattr__(self, "rules", tuple(self.rules))

    def __call__(self, exception: BaseException, attempt: int) -> Action:
        """The action for this exception, before ``max_attempts`` is looked at."""
        for rule in self.rules:
            if isinstance(exception, rule.exceptions):
                return rule.action
        return self.backoff


Policy: TypeAlias = RetryPolicy | CustomPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What an attempt leads to. For ``pending`` exactly one of ``delay`` and ``run_at`` is set."""

    status: Status
    reason: str = ""
    delay: timedelta | None = None
    run_at: datetime | None = None
    refund: bool = False
    """The attempt is not charged."""


def decide_retry(
    policy: Policy, exception: BaseException, attempt: int, max_attempts: int, random: Random
) -> Decision:
    """What ``policy`` makes of an exception, bounded by ``max_attempts``.

    The exception may itself be an outcome that the handler raised. A policy that raises, or returns what is
    no answer, never costs the job: the default backoff takes its place, and the reason says so.
    """
    retry = _Retry(attempt, max_attempts, random)
    if isinstance(exception, JobOutcome) and not _waits_for_policy(exception):
        return retry.outcome(exception)
    name = type(exception).__name__
    try:
        action: Any = policy(exception, attempt)
        if callable(action) and not isinstance(action, Backoff):
            action = action(exception, attempt)
    except BaseException as error:  # the user's code
        return retry.wait(Backoff(), f"the retry policy raised {type(error).__name__} on {name}")
    if isinstance(exception, JobOutcome) and exception.reason:
        name = exception.reason
    return retry.act(action, name)


def check_max_attempts(value: int, *, name: str = "max_attempts") -> None:
    """Refuse what the column cannot hold or what would never run."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ATTEMPTS:
        raise ConfigurationError(f"{name} is {value!r}: give a whole number from 1 to {MOST_ATTEMPTS}.")


@dataclass(frozen=True, slots=True)
class _Retry:
    """One attempt that did not simply return, on the way to its decision."""

    attempt: int
    max_attempts: int
    random: Random

    def act(self, action: Any, name: str) -> Decision:
        match action:
            case None | "fail":
                return Decision(status=Status.FAILED, reason=f"{name}: not retried, as its policy says")
            case "cancel":
                return Decision(status=Status.CANCELLED, reason=f"{name}: cancelled, as its policy says")
            case "hold":
                return Decision(status=Status.HELD, reason=f"{name}: held, as its policy says")
            case Backoff() | timedelta():
                return self.wait(action, name)
            case JobOutcome():
                return self.outcome(action, name)
        return self.wait(
            Backoff(), f"{name}: the retry policy returned {type(action).__name__}, which is no answer"
        )

    def outcome(self, outcome: JobOutcome, name: str = "") -> Decision:
        reason = outcome.reason or name or type(outcome).__name__
        match outcome:
            case Retry(at=datetime() as at):
                return self._again(Decision(status=Status.PENDING, reason=reason, run_at=at), reason)
            case Retry(after=timedelta() as after):
                return self.wait(after, reason)
            case Retry():
                return self.wait(Backoff(), reason)
            case Snooze():
                return Decision(
                    status=Status.PENDING,
                    reason=reason,
                    delay=outcome.for_,
                    run_at=outcome.until,
                    refund=True,
                )
            case Cancel():
                return Decision(status=Status.CANCELLED, reason=reason)
            case HoldForPerson():
                return Decision(status=Status.HELD, reason=reason)
        return self.wait(Backoff(), f"{reason}: {type(outcome).__name__} is no outcome that semel knows")

    def wait(self, wait: Backoff | timedelta, reason: str) -> Decision:
        delay = wait.delay(self.attempt, self.random) if isinstance(wait, Backoff) else wait
        delay = min(max(delay, timedelta(0)), LONGEST)
        shown = describe(timedelta(seconds=round(delay.total_seconds(), 1)))
        return self._again(
            Decision(status=Status.PENDING, reason=f"{reason}: again in {shown}", delay=delay), reason
        )

    def _again(self, decision: Decision, reason: str) -> Decision:
        if self.attempt < self.max_attempts:
            return decision
        return Decision(
            status=Status.FAILED, reason=f"{reason}: attempt {self.attempt} of {self.max_attempts}"
        )


def _waits_for_policy(outcome: JobOutcome) -> bool:
    return isinstance(outcome, Retry) and outcome.at is None and outcome.after is None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
