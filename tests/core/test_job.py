from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from semel.core.job import Attempt, ClaimedJob, JobOptions, NewJob
from semel.errors import ConfigurationError

AT = datetime(2026, 1, 2, tzinfo=UTC)


def test_defaults_and_durations() -> None:
    options = JobOptions(run_after="10 min", unique_key="invoice-7", unique_for="1 day")
    assert (options.queue, options.priority, options.max_attempts) == ("default", 0, 8)
    assert options.delay == timedelta(minutes=10)
    assert options.unique_time == timedelta(days=1)
    assert JobOptions().delay is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("queue", value) for value in ("", "q" * 201, "a\nb", "a\0b", "a\x7f", "a\ud800", None, 3)),
        *(("priority", value) for value in (101, -101, 1.0, True, "high", None)),
        *(("max_attempts", value) for value in (0, 32_768, True, 2.0, None)),
        *(("run_at", value) for value in (AT.replace(tzinfo=None), "tomorrow", 5)),
        *(("run_after", value) for value in (-1, "soon", True)),
        *(("unique_key", value) for value in ("", "k" * 513, "a\0b", "\udfff", 7, "😀" * 500)),
        *(("ordering_key", value) for value in ("", "k" * 513, 7)),
        ("unique_for", "1 day"),
    ],
)
def test_a_bad_option_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=field):
        JobOptions(**{field: value})


def test_the_limits_themselves_are_allowed() -> None:
    JobOptions(queue="q" * 200, priority=100, max_attempts=32_767, unique_key="k" * 512, run_at=AT)
    JobOptions(priority=-100, max_attempts=1, ordering_key="ключ", run_after=0)
    NewJob("k" * 200, b"{}")


def test_two_times_and_a_memory_without_a_key_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="run_at and run_after"):
        JobOptions(run_at=AT, run_after=1)
    with pytest.raises(ConfigurationError, match="unique_for is given without a unique_key"):
        JobOptions(unique_for=1)


@pytest.mark.parametrize("kind", ["", "k" * 201, "a\tb", "a\x85b", None])
def test_a_bad_kind_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="kind"):
        NewJob(kind, b"{}")


@pytest.mark.parametrize("payload", [b"[]", b"", b"null", "{}"])
def test_a_payload_is_the_bytes_of_an_object(payload: Any) -> None:
    with pytest.raises(ConfigurationError, match="send"):
        NewJob("send", payload)


def test_a_claimed_job_knows_its_fence_and_does_not_change() -> None:
    job = ClaimedJob(7, 41, 9, "send", b"{}", 2, 8, 1, "default", 0, AT)
    assert job.identity() == Attempt(
        job_id=7, claim=41, worker=9, kind="send", attempt=2, max_attempts=8, crashes=1
    )
    with pytest.raises(AttributeError, match="immutable"):
        job.claim = 42  # type: ignore[misc]
