import pickle
from datetime import UTC, datetime, timedelta

import pytest

from semel.core.outcomes import Cancel, HoldForPerson, JobOutcome, Retry, Snooze
from semel.errors import ConfigurationError, SemelError

AT = datetime(2026, 1, 2, tzinfo=UTC)
NAIVE = AT.replace(tzinfo=None)


def test_outcomes_are_not_errors_of_semel() -> None:
    for outcome in (Retry(), Snooze(for_=1), Cancel("gone"), HoldForPerson("unsure")):
        assert isinstance(outcome, JobOutcome)
        assert not isinstance(outcome, SemelError)


def test_durations_are_read() -> None:
    assert Retry(after="10 min").after == timedelta(minutes=10)
    assert Snooze(for_=90).for_ == timedelta(seconds=90)
    assert Retry(at=AT).at == AT


def test_times_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match="both at= and after="):
        Retry(at=AT, after=1)
    with pytest.raises(ConfigurationError, match="exactly one"):
        Snooze()
    with pytest.raises(ConfigurationError, match="exactly one"):
        Snooze(until=AT, for_=1)


def test_naive_times_and_negative_durations_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"Retry\(at=…\).*no time zone"):
        Retry(at=NAIVE)
    with pytest.raises(ConfigurationError, match=r"Snooze\(until=…\)"):
        Snooze(until=NAIVE)
    with pytest.raises(ConfigurationError, match=r"Snooze\(until=…\)"):
        Snooze(until="tomorrow")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"Retry\(after=…\)"):
        Retry(after=-1)


@pytest.mark.parametrize(
    "outcome",
    [Retry(at=AT, reason="a"), Retry(after=3), Retry(), Snooze(until=AT), Cancel("b"), HoldForPerson()],
)
def test_outcomes_survive_pickling(outcome: JobOutcome) -> None:
    copy = pickle.loads(pickle.dumps(outcome))
    assert type(copy) is type(outcome)
    assert vars(copy) == vars(outcome)
    assert str(copy) == outcome.reason
