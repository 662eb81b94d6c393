"""Declared effects: what each promises, and declarations that cannot be right are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from semel.core.effects import (
    DONE,
    NOT_DONE,
    UNKNOWN,
    AcceptDuplicate,
    AcceptMiss,
    Answer,
    Hold,
    Lookup,
    ProviderKey,
    Row,
    promise,
)
from semel.errors import ConfigurationError

LOOKUP = Lookup(find=print, settle="30 s")
PROMISES = [
    (Row(), "1", "exactly 1", "rolled everything back"),
    (ProviderKey(valid_for="24 h"), "1", "exactly 1", "same reference within 1 day; then: hold"),
    (ProviderKey(valid_for="24 h", then=LOOKUP), "1", "exactly 1", "then: lookup"),
    (LOOKUP, "1", "exactly 1", "asked for by reference, 30 s after"),
    (Hold(), "1", "exactly 1", "held for a person"),
    (AcceptDuplicate(), "2", "1 or more", "at most 1 more; then held"),
    (AcceptDuplicate(extra=3), "4", "1 or more", "at most 3 more"),
    (AcceptMiss(), "1", "0 or 1", "completed as missed"),
]


@pytest.mark.parametrize(("effect", "most", "completed", "stale"), PROMISES)
def test_the_table_of_promises(effect, most, completed, stale):
    promised = promise(effect)
    assert (promised.never_more_than, promised.completed_means) == (most, completed)
    assert stale in promised.stale


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Lookup(find="not a function", settle="1 s"),
        lambda: Lookup(find=print, settle="soon"),
        lambda: Lookup(find=print, settle="1 s", looks=0),
        lambda: Lookup(find=print, settle="1 s", looks=True),
        lambda: Lookup(find=print, settle="1 s", looks=1.5),
        lambda: Lookup(find=print, settle=-1),
        lambda: Lookup(find=print, settle="1 s", backoff="often"),
        lambda: ProviderKey(valid_for="a while"),
        lambda: ProviderKey(valid_for="1 h", then=AcceptMiss()),
        lambda: ProviderKey(valid_for="1 h", then=None),
        lambda: AcceptDuplicate(extra=0),
        lambda: AcceptDuplicate(extra=True),
        lambda: AcceptDuplicate(extra=1.0),
    ],
)
def test_what_cannot_be_right_is_refused(declare):
    with pytest.raises(ConfigurationError):
        declare()


@pytest.mark.parametrize("make", [lambda: Lookup(print, "1 s"), lambda: ProviderKey("1 h")])
def test_options_are_named(make):
    with pytest.raises(TypeError):
        make()


def test_durations_are_taken_as_people_write_them():
    assert Lookup(find=print, settle="2 min").settle == timedelta(minutes=2)
    assert ProviderKey(valid_for=3600).valid_for == timedelta(hours=1)


def test_looks_wait_twice_as_long_each_time_and_an_hour_at_most():
    lookup = Lookup(find=print, settle=0, backoff="30 s")
    waits = [lookup.wait_before(look).total_seconds() for look in (1, 2, 3, 8, 1000)]
    assert waits == [30, 60, 120, 3600, 3600]


def test_the_three_answers_of_a_lookup():
    assert tuple(Answer) == (DONE, NOT_DONE, UNKNOWN)


def test_effects_are_values_and_a_lookup_does_not_print_its_function():
    assert Hold() == Hold()
    assert Lookup(find=print, settle=1) == Lookup(find=print, settle="1 s")
    assert "print" not in repr(LOOKUP)
    with pytest.raises(AttributeError):
        AcceptDuplicate().extra = 5
