"""Words for times, and what may go to a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from semel.cli.choices import name_person, parse_statuses, parse_when
from semel.cli.output import age, ago, moment, printable_lines
from semel.core.states import Status
from semel.errors import ConfigurationError


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.2, "<1 s"),
        (59, "59 s"),
        (60, "1 min"),
        (7_199, "1 h"),
        (86_400, "1 day"),
        (864_000, "10 days"),
    ],
)
def test_age(seconds: float, words: str) -> None:
    assert age(timedelta(seconds=seconds)) == words


def test_moments() -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert ago(now - timedelta(minutes=3), now) == "3 min ago"
    assert ago(now + timedelta(hours=2), now) == "in 2 h"
    assert moment(None, now) == "-"
    assert moment(now, now).endswith("(0 s ago)")


def test_when() -> None:
    assert parse_when(None, "--older") is None
    assert parse_when("90 min", "--older") == timedelta(minutes=90)
    assert parse_when("2026-01-31T08:00:00+01:00", "--older") == datetime(2026, 1, 31, 7, tzinfo=UTC)
    local = parse_when("2026-01-31", "--older")
    assert isinstance(local, datetime)
    assert local == datetime(2026, 1, 31).astimezone()
    with pytest.raises(ConfigurationError, match="neither an age nor a date"):
        parse_when("soon", "--older")


def test_statuses() -> None:
    assert parse_statuses(None) == frozenset()
    assert parse_statuses(["done, failed", "held"]) == {Status.DONE, Status.FAILED, Status.HELD}


def test_who() -> None:
    assert name_person("ann") == "ann"
    assert "@" in name_person(None)


def test_what_a_terminal_would_obey_is_left_out() -> None:
    assert printable_lines("a\x1b[31m\tb\r\n\u202ec") == "a [31m  b\n c"
