"""An attempt that acts in spite of an earlier one: what it may not say, and until when it may send again."""

from __future__ import annotations

import pytest
from tests.guard.stored import Ago

from semel import Hold, Lookup, NotDone, ProviderKey
from semel.core.effects import DONE
from semel.core.operations import Reply
from semel.errors import ClaimLost, Held
from semel.guard import delivery
from semel.store.guard_begin import begin_known

pytestmark = pytest.mark.usefixtures("stored")
KEYED = ProviderKey(valid_for="1 day")


def deliver(once, error=None, **options):
    """One delivery of the operation; its outside call raises ``error``."""
    with once.claim("charge", 1, acting="explicit", **{"effect": KEYED} | options) as op, op.acting():
        if error is not None:
            raise error


def test_not_done_releases_unless_an_earlier_attempt_may_have_acted(once, only):
    with pytest.raises(NotDone):
        deliver(once, NotDone("refused"))
    assert only()["state"] == "released"
    with pytest.raises(TimeoutError):
        deliver(once, TimeoutError())
    with pytest.raises(NotDone):
        deliver(once, NotDone("refused"))
    assert (only()["state"], only()["unsure"]) == ("claimed", 2), "the one before may have acted"
    assert only()["acting_at"] is not None
    deliver(once)
    assert (only()["state"], only()["generation"]) == ("completed", 1)


def test_a_paused_attempt_does_not_send_a_reference_that_may_be_forgotten(once, stored, only):
    with pytest.raises(TimeoutError):
        deliver(once, TimeoutError())
    acted = []
    with pytest.raises(ClaimLost, match="may have forgotten"):
        with once.claim("charge", 1, acting="explicit", effect=KEYED) as op:
            stored.change(only()["key"], reference_at=Ago(90_000))
            with op.acting():
                acted.append(1)
    assert not acted
    assert (only()["state"], only()["unsure"]) == ("claimed", 2)
    with pytest.raises(Held):
        deliver(once)


def test_the_first_attempt_may_be_as_late_as_it_is(once, stored, only):
    with once.claim("charge", 1, acting="explicit", effect=KEYED) as op:
        stored.change(only()["key"], reference_at=Ago(90_000))
        with op.acting():
            pass
    assert only()["outcome"] == "acted"


@pytest.mark.parametrize("then", ["lookup", "provider key"])
def test_a_takeover_to_look_whose_answer_was_lost_looks_all_the_same(once, stored, only, monkeypatch, then):
    """The commit went through and its acknowledgement did not come: asked again, the record is mine, but nobody looked."""
    asked, acted = [], []

    def find(reference):
        asked.append(reference)
        return DONE

    effect = Lookup(find, settle=0)
    if then == "provider key":
        effect = ProviderKey(valid_for="1 s", then=effect)
    with pytest.raises(TimeoutError):
        deliver(once, TimeoutError(), effect=effect)
    replies = []

    def twice(request):
        replies.append(once.place.ask(begin_known(request)).reply)
        return begin_known(request)

    monkeypatch.setattr(delivery, "begin_known", twice)
    with once.claim("charge", 1, acting="explicit", effect=effect) as op:
        if not op.is_repeat:
            acted.append(1)
    assert replies == [Reply.LOOK]
    assert (len(asked), acted) == (1, [])
    assert only()["outcome"] == "found"


def test_what_is_held_stays_so_for_whoever_comes(once, only):
    with pytest.raises(TimeoutError):
        deliver(once, TimeoutError(), effect=Hold())
    for _ in range(2):
        with pytest.raises(Held):
            deliver(once, effect=Hold())
    assert (only()["state"], only()["claim"]) == ("held", 1)
