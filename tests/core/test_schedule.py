from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from semel.core.schedule import Schedule
from semel.errors import ConfigurationError

LONDON, NEW_YORK, LORD_HOWE = "Europe/London", "America/New_York", "Australia/Lord_Howe"
CAIRO, SAO_PAULO, SAMOA = "Africa/Cairo", "America/Sao_Paulo", "Pacific/Apia"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ticks(expression: str, tz: str, after: str, until: str) -> list[str]:
    found = Schedule("s", expression, tz=tz).ticks_between(utc(after), utc(until), 1_000)
    return [tick.strftime("%dT%H:%M") for tick in found]


@pytest.mark.parametrize(
    ("expression", "tz", "after", "until", "expected"),
    [
        # London, 2024-03-31: 01:00 to 02:00 local does not exist (the jump is at 01:00Z).
        ("30 1 * * *", LONDON, "2024-03-30", "2024-04-02", ["30T01:30", "31T01:00", "01T00:30"]),
        ("0,15,30 1 * * *", LONDON, "2024-03-31", "2024-03-31T12:00", ["31T01:00"]),
        ("0 1,2 * * *", LONDON, "2024-03-31", "2024-03-31T12:00", ["31T01:00"]),
        ("59 0 * * *", LONDON, "2024-03-31", "2024-03-31T12:00", ["31T00:59"]),
        (
            "*/30 * * * *",
            LONDON,
            "2024-03-31T00:00",
            "2024-03-31T02:00",
            ["31T00:30", "31T01:00", "31T01:30", "31T02:00"],
        ),
        # London, 2024-10-27: 01:00 to 02:00 local comes twice (from 00:00Z and from 01:00Z).
        ("30 1 * * *", LONDON, "2024-10-26T12:00", "2024-10-28", ["27T00:30"]),
        ("0 2 * * *", LONDON, "2024-10-26T12:00", "2024-10-28", ["27T02:00"]),
        (
            "0 * * * *",
            LONDON,
            "2024-10-26T23:00",
            "2024-10-27T03:00",
            ["27T00:00", "27T01:00", "27T02:00", "27T03:00"],
        ),
        (
            "0 0-23 * * *",
            LONDON,
            "2024-10-26T23:00",
            "2024-10-27T02:00",
            ["27T00:00", "27T01:00", "27T02:00"],
        ),
        ("0 */2 * * *", LONDON, "2024-10-26T22:00", "2024-10-27T05:00", ["26T23:00", "27T02:00", "27T04:00"]),
        # New York, 2025-03-09 at 07:00Z and 2025-11-02 at 06:00Z.
        ("30 2 * * *", NEW_YORK, "2025-03-09", "2025-03-11", ["09T07:00", "10T06:30"]),
        ("30 1 * * *", NEW_YORK, "2025-11-02", "2025-11-04", ["02T05:30", "03T06:30"]),
        # Lord Howe moves by 30 minutes: at 2024-10-05T15:30Z from 02:00, at 2024-04-06T15:00Z back to 01:30.
        ("15 2 * * *", LORD_HOWE, "2024-10-05T12:00", "2024-10-06T12:00", ["05T15:30"]),
        (
            "0 * * * *",
            LORD_HOWE,
            "2024-10-05T14:00",
            "2024-10-05T17:30",
            ["05T14:30", "05T16:00", "05T17:00"],
        ),
        (
            "*/15 * * * *",
            LORD_HOWE,
            "2024-10-05T15:00",
            "2024-10-05T16:00",
            ["05T15:15", "05T15:30", "05T15:45", "05T16:00"],
        ),
        ("45 1 * * *", LORD_HOWE, "2024-04-06T12:00", "2024-04-07T12:00", ["06T14:45"]),
        (
            "*/15 * * * *",
            LORD_HOWE,
            "2024-04-06T14:30",
            "2024-04-06T15:30",
            ["06T14:45", "06T15:00", "06T15:15", "06T15:30"],
        ),
        # Midnight itself is skipped: Cairo 2024-04-25T22:00Z, São Paulo 2018-11-04T03:00Z.
        ("0 0 * * *", CAIRO, "2024-04-25T12:00", "2024-04-27", ["25T22:00", "26T21:00"]),
        ("0 0 * * *", SAO_PAULO, "2018-11-03T12:00", "2018-11-05T12:00", ["04T03:00", "05T02:00"]),
        # Samoa had no 2011-12-30: its ticks fall on the instant that the day after begins at.
        ("0 9 * * *", SAMOA, "2011-12-29", "2011-12-31T12:00", ["29T19:00", "30T10:00", "30T19:00"]),
    ],
)
def test_ticks_at_a_change_of_the_clock(
    expression: str, tz: str, after: str, until: str, expected: list[str]
) -> None:
    assert ticks(expression, tz, after, until) == expected


@pytest.mark.parametrize(
    ("expression", "tz", "at", "expected"),
    [
        ("30 1 * * *", LONDON, "2024-10-27T01:15", "2024-10-27T00:30"),  # the second 01:15: 01:30 has been
        ("30 1 * * *", LONDON, "2024-03-31T00:59:59", "2024-03-30T01:30"),
        ("30 1 * * *", LONDON, "2024-03-31T01:00", "2024-03-31T01:00"),
        (
            "59 59 * * * *",
            LONDON,
            "2024-03-31T01:00",
            "2024-03-31T00:59:59",
        ),  # the last second before the jump
        ("0 * * * *", LONDON, "2024-10-27T01:30", "2024-10-27T01:00"),
        ("0 * * * *", LORD_HOWE, "2024-04-06T15:10", "2024-04-06T14:00"),
    ],
)
def test_the_latest_tick_near_a_change_of_the_clock(expression: str, tz: str, at: str, expected: str) -> None:
    assert Schedule("s", expression, tz=tz).latest_tick(utc(at)) == utc(expected)


def test_the_second_pass_counts_even_if_the_next_match_on_the_clock_is_a_year_off() -> None:
    cairo = Schedule("s", "30 * 31 10 *", tz=CAIRO)  # 2024-10-31 ends with 23:00 to 24:00 twice
    assert cairo.next_tick(utc("2024-10-31T20:50")) == utc("2024-10-31T21:30")


def test_five_fields_six_fields_and_names() -> None:
    assert ticks("30 3 * * mon-fri", "UTC", "2026-01-02T12:00", "2026-01-06T12:00") == [
        "05T03:30",
        "06T03:30",
    ]
    schedule = Schedule("s", " 15  0 9 * * * ")
    assert schedule.expression == "15 0 9 * * *"
    assert schedule.next_tick(utc("2026-01-02T09:00:14.5")) == utc("2026-01-02T09:00:15")
    assert schedule.next_tick(utc("2026-01-02T09:00:15")) == utc("2026-01-03T09:00:15")
    assert schedule.latest_tick(utc("2026-01-02T09:00:15")) == utc("2026-01-02T09:00:15")


def test_rare_expressions_cross_years() -> None:
    leap = Schedule("s", "0 * 29 2 *", tz=LONDON)
    assert leap.next_tick(utc("2025-06-01")) == utc("2028-02-29")
    assert leap.latest_tick(utc("2027-06-01")) == utc("2024-02-29T23:00")
    assert Schedule("s", "0 12 29 2 *").latest_tick(utc("2104-02-28")) == utc("2096-02-29T12:00")


def test_an_interval_counts_from_1970() -> None:
    schedule = Schedule("s", every="15 min")
    assert schedule.next_tick(utc("2026-01-02T10:15")) == utc("2026-01-02T10:30")
    assert schedule.next_tick(utc("2026-01-02T10:14:59.9")) == utc("2026-01-02T10:15")
    assert schedule.latest_tick(utc("2026-01-02T10:15")) == utc("2026-01-02T10:15")
    assert schedule.latest_tick(utc("1969-12-31T23:50")) == utc("1969-12-31T23:45")
    assert Schedule("s", every=timedelta(days=7)).next_tick(utc("1970-01-01")) == utc("1970-01-08")


def test_the_zone_of_the_question_does_not_matter() -> None:
    schedule = Schedule("s", "0 9 * * *", tz=LONDON)
    asked = utc("2026-07-01T12:00").astimezone(ZoneInfo(NEW_YORK))
    assert schedule.next_tick(asked) == schedule.next_tick(utc("2026-07-01T12:00")) == utc("2026-07-02T08:00")
    assert schedule.next_tick(asked).tzinfo is UTC
    for ask in (schedule.next_tick, schedule.latest_tick):
        with pytest.raises(ConfigurationError, match="no time zone"):
            ask(utc("2026-01-01").replace(tzinfo=None))


def test_a_limit_keeps_the_oldest_ticks() -> None:
    schedule = Schedule("s", every=60)
    found = schedule.ticks_between(utc("2026-01-01T00:00"), utc("2026-01-02T00:00"), 3)
    assert found == tuple(utc(f"2026-01-01T00:0{minute}") for minute in (1, 2, 3))
    assert schedule.ticks_between(utc("2026-01-01T00:00"), utc("2026-01-01T00:01"), 3) == found[:1]
    assert schedule.ticks_between(utc("2026-01-02"), utc("2026-01-01"), 3) == ()


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "60 * * * *",
        "0 25 * * *",
        "0 0 30 2 *",
        "0 0 */40 2 MON#3",
        "@daily",
        "a b c d e",
        "0 0 * * MON#2/2",
    ],
)
def test_a_bad_expression_is_refused_with_an_example(expression: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Schedule("nightly", expression)
    assert repr(expression) in str(caught.value)
    assert "nightly" in str(caught.value)
    assert "30 3 * * mon-fri" in str(caught.value)


@pytest.mark.parametrize(
    "tz", ["Europe/Londn", "", "America", "../etc/passwd", "/etc/passwd", "a\0b", 3, None]
)
def test_an_unknown_zone_is_refused(tz: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"time zone.*Europe/London"):
        Schedule("nightly", "0 0 * * *", tz=tz)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"expression": "* * * * *", "every": 60},
        {"every": 0},
        {"every": "500 ms"},
        {"every": -5},
        {"expression": 5},
    ],
)
def test_other_bad_settings_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="nightly"):
        Schedule("nightly", **arguments)
    with pytest.raises(ConfigurationError, match="name"):
        Schedule("", "* * * * *")


@given(st.text("0123456789*/-,#LWMON ", max_size=20))
@example("0 0 99999999999999999999 * *")
def test_any_text_is_an_expression_or_a_clear_error(text: str) -> None:
    try:
        schedule = Schedule("s", text)
    except ConfigurationError:
        return
    assert schedule.next_tick(utc("2026-01-01")) > utc("2026-01-01")


def test_the_ends_of_time() -> None:
    for schedule in (
        Schedule("s", "0 9 * * *", tz=NEW_YORK),
        Schedule("s", "0 * * * *"),
        Schedule("s", every="1 day"),
    ):
        assert schedule.latest_tick(datetime.min.replace(tzinfo=UTC) + timedelta(seconds=1)) in (
            None,
            utc("0001-01-01"),
        )
        with pytest.raises(ConfigurationError, match="no tick after 9999"):
            schedule.next_tick(datetime.max.replace(tzinfo=UTC))


zones = st.sampled_from(
    ["UTC", LONDON, NEW_YORK, LORD_HOWE, CAIRO, SAO_PAULO, SAMOA, "Africa/Casablanca", "Asia/Kolkata"]
)
expressions = st.sampled_from(
    [
        "30 1 * * *",
        "*/20 0-3 * * *",
        "0 */2 * * *",
        "0 0 * * *",
        "15 2 * * sun",
        "*/15 * * * *",
        "0 * * * *",
        "7 0-23 * * sat,sun",
        "*/30 30 * * * *",
        "*/30 59 1,2 * * *",
        "0 3 1 * *",
    ]
)
# Near changes of the clock (hours around a Sunday in spring or autumn), and anywhere.
CHANGES = [
    *("2024-03-31T01:00", "2024-10-27T01:00", "2025-03-09T07:00", "2025-11-02T06:00", "2024-10-05T15:30"),
    *("2024-04-06T15:00", "2024-04-25T22:00", "2024-10-31T21:00", "2018-11-04T03:00", "2018-02-18T02:00"),
    *("2011-12-30T10:00", "2024-03-10T02:00", "2024-04-14T03:00"),
]
instants = st.builds(
    lambda change, offset: utc(change) + offset,
    st.sampled_from(CHANGES),
    st.timedeltas(timedelta(hours=-30), timedelta(hours=30)),
) | st.timedeltas(timedelta(0), timedelta(days=18_000)).map(lambda since: utc("1990-01-01") + since)
schedules = st.builds(lambda text, zone: Schedule("s", text, tz=zone), expressions, zones) | st.builds(
    lambda every: Schedule("s", every=every), st.integers(1, 10**6)
)


@given(schedules, instants)
def test_next_and_latest_agree(schedule: Schedule, instant: datetime) -> None:
    following = schedule.next_tick(instant)
    assert following > instant
    assert schedule.latest_tick(following) == following
    latest = schedule.latest_tick(instant)
    assert latest is not None
    assert latest <= instant
    assert schedule.latest_tick(following - timedelta(microseconds=1)) == latest  # nothing lies between
    assert schedule.next_tick(latest) == following
    assert schedule.next_tick(latest - timedelta(microseconds=1)) == latest


@settings(deadline=None)
@given(expressions, zones, st.sampled_from(CHANGES))
def test_every_tick_is_as_the_rule_written_plainly_says(expression: str, tz: str, change: str) -> None:
    """Against a slow reading of the rule, one wall-clock time after the other, without the walker."""
    start, end = utc(change) - timedelta(hours=4), utc(change) + timedelta(hours=4)
    found = Schedule("s", expression, tz=tz).ticks_between(start, end, 100_000)
    assert list(found) == plain_ticks(expression, tz, start, end)
    assert all(earlier < later for earlier, later in pairwise(found))


def plain_ticks(expression: str, tz: str, start: datetime, end: datetime) -> list[datetime]:
    """By steps of 30 s, which all of ``expressions`` and all changes of the clock are multiples of."""
    zone, step = ZoneInfo(tz), timedelta(seconds=30)
    fields = expression.split()
    ranges = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]
    wanted = [numbers(text, *span) for text, span in zip(["0", *fields][-6:], ranges, strict=True)]
    instant = start.replace(second=0, microsecond=0) - timedelta(hours=2)
    reached = instant.astimezone(zone).replace(tzinfo=None)  # the latest wall-clock time so far
    ticks: set[datetime] = set()
    while (instant := instant + step) <= end:
        wall = instant.astimezone(zone).replace(tzinfo=None)
        shown = [wall]
        if (
            len(wanted[2]) < 24
        ):  # fixed hours: each wall-clock time once, also those that the clock jumps over
            shown = [reached + count * step for count in range(1, max(0, (wall - reached) // step) + 1)]
        reached = max(reached, wall)
        if any(matches(wanted, each) for each in shown):
            ticks.add(instant)
    return sorted(tick for tick in ticks if start < tick <= end)


def numbers(text: str, low: int, high: int) -> set[int]:
    """A cron field, in the few forms that ``expressions`` uses."""
    result: set[int] = set()
    for part in text.replace("sun", "0").replace("sat", "6").split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start, stop = (low, high) if span == "*" else (int(first), int(last or first))
        result |= set(range(start, stop + 1, int(step or 1)))
    return result


def matches(wanted: list[set[int]], wall: datetime) -> bool:
    shown = (wall.second, wall.minute, wall.hour, wall.day, wall.month, wall.isoweekday() % 7)
    return all(value in field for value, field in zip(shown, wanted, strict=True))
