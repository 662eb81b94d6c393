from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.durations import LONGEST, describe, to_timedelta
from semel.errors import ConfigurationError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (timedelta(minutes=3), timedelta(minutes=3)),
        (90, timedelta(seconds=90)),
        (0.25, timedelta(milliseconds=250)),
        (0, timedelta(0)),
        ("90 s", timedelta(seconds=90)),
        ("90", timedelta(seconds=90)),
        ("10 min", timedelta(minutes=10)),
        ("24 h", timedelta(hours=24)),
        ("500 ms", timedelta(milliseconds=500)),
        ("3 days", timedelta(days=3)),
        ("1h30m", timedelta(minutes=90)),
        ("1 Hour, 30 Minutes", timedelta(minutes=90)),
        ("1.5 h", timedelta(minutes=90)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_reads_what_people_write(value: timedelta | float | str, expected: timedelta) -> None:
    assert to_timedelta(value, name="lease") == expected


@pytest.mark.parametrize(
    "value",
    [
        -1,
        "-5 s",
        timedelta(seconds=-1),
        float("nan"),
        float("inf"),
        10**400,
        1e300,
        True,
        None,
        "",
        "  ",
        "soon",
        "10 parsecs",
        "10 min later",
        "min",
        "1e3 s",
        "٣ s",
        "101 years",
        "999999999999999999 weeks",
        timedelta.max,
        b"10 s",
    ],
)
def test_refuses_the_rest_and_names_the_setting(value: object) -> None:
    with pytest.raises(ConfigurationError, match="lease"):
        to_timedelta(value, name="lease")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(minutes=10), "10 min"),
        (timedelta(minutes=90), "1 h 30 min"),
        (timedelta(milliseconds=500), "500 ms"),
        (timedelta(seconds=1.5), "1.5 s"),
        (timedelta(0), "0 s"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=3, seconds=1), "3 days 1 s"),
        (timedelta(minutes=-10), "-10 min"),
    ],
)
def test_describes_in_words(duration: timedelta, words: str) -> None:
    assert describe(duration) == words


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_what_is_described_reads_back_exactly(duration: timedelta) -> None:
    assert to_timedelta(describe(duration), name="x") == duration


@given(st.text(alphabet="0123456789.smhdw ,-", max_size=12))
def test_any_text_is_a_duration_or_a_clear_error(text: str) -> None:
    try:
        duration = to_timedelta(text, name="x")
    except ConfigurationError:
        return
    assert timedelta(0) <= duration <= LONGEST
