"""Times as files have them, one by one and many at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.past import to_milliseconds
from semel.core.zones import to_zone
from semel.errors import ConfigurationError
from semel.repeats.problems import Problems
from semel.repeats.times import Clock

KNOWN = to_milliseconds(datetime(2026, 1, 31, 8, 15, 30, 250_000, tzinfo=UTC))
WHOLE = KNOWN - 250


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2026-01-31T08:15:30.250Z", KNOWN),
        ("2026-01-31 08:15:30.250+00", KNOWN),
        ("2026-01-31 08:15:30,250 UTC", KNOWN),
        ("2026-01-31 10:15:30.25 +0200", KNOWN),
        ("2026-01-31T08:15:30.250000000Z", KNOWN),
        ("2026-01-31T08:15:30.2504Z", KNOWN),
        ("20260131T081530Z", WHOLE),
        ("20260131081530", WHOLE),
        ("2026/01/31 08:15:30", WHOLE),
        ("31/Jan/2026:09:15:30 +0100", WHOLE),
        ("[31/Jan/2026:09:15:30 +0100]", WHOLE),
        ("Sat, 31 Jan 2026 08:15:30 GMT", WHOLE),
        ("1769847330", WHOLE),
        ("1769847330.25", KNOWN),
        ("1769847330250", KNOWN),
        ("1769847330250499", KNOWN),
        ("1769847330250499999", KNOWN),
        ("2026-01-31", to_milliseconds(datetime(2026, 1, 31, tzinfo=UTC))),
        ("20260131", to_milliseconds(datetime(2026, 1, 31, tzinfo=UTC))),
        (" 2026-01-31T08:15:30Z ", WHOLE),
    ],
)
def test_known_times(text: str, milliseconds: int) -> None:
    assert Clock(Problems()).read(text, 1) == milliseconds


@pytest.mark.parametrize(
    "text",
    ["soon", "", "now", "31.01.2026", "01/31/2026 08:15", "2026-13-01", "2026-02-30T00:00:00Z", "9" * 21, "9" * 40,
     "-1", "nan", "inf", "1e9", "２０２６-01-31", "2026-01-31T24:01:00Z", "2026-01-31T08:15:60Z", "0x10", "1_000"],
)  # fmt: skip
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        Clock(Problems()).read(text, 1)


@pytest.mark.parametrize(
    ("unit", "text", "milliseconds"),
    [
        ("s", "12", 12_000),
        ("s", "12.0015", 12_002),
        ("ms", "12", 12),
        ("us", "12500", 13),
        ("ns", "12000000", 12),
    ],
)
def test_a_unit_that_is_said_counts(unit: str, text: str, milliseconds: int) -> None:
    assert Clock(Problems(), unit=unit).read(text, 1) == milliseconds
    with pytest.raises(ValueError, match="no number"):
        Clock(Problems(), unit=unit).read("2026-01-31", 1)


def test_a_format_that_is_said_counts() -> None:
    clock = Clock(Problems(), to_zone("Europe/Vienna"), format="%d.%m.%Y %H:%M")
    assert clock.read("31.01.2026 09:15", 1) == to_milliseconds(datetime(2026, 1, 31, 8, 15, tzinfo=UTC))


def test_a_zone_with_summer_time() -> None:
    clock = Clock(Problems(), to_zone("Europe/Vienna"))
    assert clock.read("2026-07-01T12:00:00", 1) == to_milliseconds(datetime(2026, 7, 1, 10, tzinfo=UTC))
    assert clock.read("2026-01-01T12:00:00", 1) == to_milliseconds(datetime(2026, 1, 1, 11, tzinfo=UTC))
    assert clock.problems.kinds == {}


@pytest.mark.parametrize("text", ["Vienna", "+25:00", "", "../etc/passwd", "Europe/Vienna'; --", "UTC+2"])
def test_zones_that_do_not_exist(text: str) -> None:
    with pytest.raises(ConfigurationError):
        to_zone(text)


OFFSETS = [None, UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=3, minutes=30))]
MOMENTS = st.builds(
    lambda base, zone, digits, mark: base.replace(tzinfo=zone, microsecond=base.microsecond if digits else 0).isoformat(
        sep=mark, timespec="microseconds" if digits == 6 else "milliseconds" if digits else "seconds"
    ),
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001
    st.sampled_from(OFFSETS),
    st.sampled_from([0, 3, 6]),
    st.sampled_from("T "),
)  # fmt: skip


@given(
    first=MOMENTS,
    texts=st.lists(st.one_of(MOMENTS, st.sampled_from(["20260101T1011+02:00", "x", ":00"])), min_size=1),
)
def test_many_at_once_are_what_they_are_one_by_one(first: str, texts: list[str]) -> None:
    for zone in (None, to_zone("+02:00"), to_zone("Europe/Vienna")):
        together, alone = Clock(Problems(), zone), Clock(Problems(), zone)
        assert together.read(first, 1) == alone.read(first, 1)
        block = together.read_block(texts, 2)
        if block is None:
            continue
        assert block == [alone.read(text, line) for line, text in enumerate(texts, 2)]
        assert together.problems == alone.problems


def test_blocks_are_read_at_once_where_they_can_be() -> None:
    for texts in (
        ["2026-01-01T00:00:01Z"] * 3,
        ["2026-01-01 00:00:01"] * 3,
        ["2026-01-01T00:00:01.5+02:00"] * 3,
    ):
        clock = Clock(Problems())
        first = clock.read(texts[0], 1)
        assert clock.read_block(texts, 2) == [first] * 3
    clock = Clock(Problems())
    clock.read("2026-01-01T00:00:01Z", 1)
    assert clock.read_block(["2026-01-01T00:00:01Z", "2026-01-01T00:00:01+02:00"], 2) is None
