"""Outside systems that take a key, can be asked, forget, lag or remember a failure."""

from __future__ import annotations

from typing import Any

import pytest
from tests.guard_cases.conftest import Case

from semel import DONE, NOT_DONE, UNKNOWN, Found, Held, InProgress, Lookup, ProviderKey


class Provider:
    """Answers what it is told to, in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def find(self, reference: str, *args: Any, **kwargs: Any) -> Any:
        self.asked.append(reference)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_c16_a_charge_whose_worker_died_is_found_by_its_reference(case: Case) -> None:
    provider = Provider(Found("ch_1"))
    charge = case.charge(Lookup(provider.find, settle="10 s"), lease="5 s")
    case.dies("acted", lambda: charge(1))
    case.later(16)
    assert charge(1) == "ch_1"
    assert provider.asked == case.effects
    assert (case.state, case.outcome) == ("completed", "found")
    assert charge(1) == "ch_1"


def test_c53_not_found_is_believed_after_the_settle_time_only(case: Case) -> None:
    provider = Provider(DONE)
    charge = case.charge(Lookup(provider.find, settle="10 s"), lease="5 s")
    case.dies("acted", lambda: charge(1))
    for _ in range(2):
        case.later(5.5)
        with pytest.raises(InProgress):
            charge(1)
    assert provider.asked == [], "nobody asks before the settle time is over"
    case.later(5)
    charge(1)
    assert len(case.effects) == 1


def test_c53_a_settle_time_that_is_too_short_doubles(case: Case) -> None:
    """The limit of the promise: a provider that says NOT_DONE too soon is believed."""
    charge = case.charge(Lookup(Provider(NOT_DONE).find, settle="5 s"), lease="5 s")
    case.dies("acted", lambda: charge(1))
    case.later(11)
    charge(1)
    assert len(case.effects) == 2


def test_c70_what_cannot_tell_is_asked_again_and_then_held(case: Case) -> None:
    provider = Provider(UNKNOWN, ConnectionError("the provider is down"), "maybe")
    charge = case.charge(Lookup(provider.find, settle=0, looks=3, backoff="10 s"), lease="5 s")
    case.dies("acted", lambda: charge(1))
    case.later(6)
    for wait in (10, 20):
        with pytest.raises(InProgress):
            charge(1)
        with pytest.raises(InProgress):
            charge(1)  # not asked again before the backoff
        case.later(wait + 1)
    with pytest.raises(Held, match="3 look-ups could not tell"):
        charge(1)
    assert len(provider.asked) == 3
    assert len(case.effects) == 1


def test_c48_every_attempt_sends_the_same_reference(case: Case) -> None:
    def too_slow() -> None:
        raise TimeoutError("no answer within 10 s")

    charge = case.charge(ProviderKey(valid_for="24 h"), lease="10 s")
    for seconds in (12, 8):
        case.hooks["acted"] = too_slow
        with pytest.raises(TimeoutError):
            charge(1)
        case.later(seconds)
    assert charge(1) == "charge of 1"
    assert len(case.effects) == 3
    assert len(set(case.effects)) == 1, "to the provider it is one charge"


@pytest.mark.parametrize(("hours", "again"), [(20, True), (30, False)])
def test_c55_the_same_key_is_sent_again_only_while_the_provider_surely_knows_it(
    case: Case, hours: int, again: bool
) -> None:
    charge = case.charge(ProviderKey(valid_for="24 h"))
    case.dies("acted", lambda: charge(1))
    case.later(hours * 3600)
    if again:
        charge(1)
    else:
        with pytest.raises(Held, match="forgotten"):
            charge(1)
    assert len(case.effects) == 1 + again
    assert len(set(case.effects)) == 1


def test_c55_after_the_window_the_provider_is_asked_where_it_can_be(case: Case) -> None:
    provider = Provider(DONE)
    charge = case.charge(ProviderKey(valid_for="24 h", then=Lookup(provider.find, settle="1 min")))
    case.dies("acted", lambda: charge(1))
    case.later(30 * 3600)
    charge(1)
    assert (len(case.effects), case.outcome) == (1, "found")


def test_c50_a_new_reference_comes_after_the_answer_not_done_and_never_by_date(case: Case) -> None:
    declined: list[str] = []

    def find(reference: str, *args: Any, **kwargs: Any) -> Any:
        return NOT_DONE if reference in declined else DONE

    charge = case.charge(Lookup(find, settle=0), lease="5 s")
    case.dies("acted", lambda: charge(1))
    first = case.column("reference")
    declined.append(first)
    case.later(24 * 3600)
    assert case.column("reference") == first
    case.dies("acted", lambda: charge(1))
    second = case.column("reference")
    assert second != first
    assert case.column("generation") == 2
    case.later(24 * 3600)
    charge(1)
    assert case.effects == [first, second]


def test_c50_a_person_gives_a_new_reference_where_the_provider_remembers_a_failure(case: Case) -> None:
    from semel.core.people import Act
    from semel.guard.declaration import make_reference
    from semel.operate.held import resolve
    from semel.store.guard_people import Decision
    from semel.store.own_connections import open_own

    charge = case.charge()
    case.dies("acted", lambda: charge(1))
    case.later(61)
    with pytest.raises(Held):
        charge(1)
    own = open_own(case.target)
    with own.session() as session:
        decision = Decision(
            operation_id=case.column("id"),
            act=Act.REDO,
            seen=1,
            who="ann",
            why="it was declined, and the provider repeats that",
            new_reference=make_reference(),
        )
        resolve(session, decision)
    own.close()
    charge(1)
    assert len(set(case.effects)) == 2
