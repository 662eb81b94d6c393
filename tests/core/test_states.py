from itertools import product

import pytest

from semel.core.states import LIVE, MOVES, Status, Verb, allowed

EXPECTED = {
    "pending": {"running", "done", "cancelled"},
    "running": {"pending", "running", "done", "failed", "cancelled", "held"},
    "failed": {"pending", "done", "cancelled"},
    "held": {"pending", "done", "cancelled"},
    "cancelled": {"pending"},
    "done": {"pending"},
}


@pytest.mark.parametrize(("old", "new"), list(product(Status, Status)))
def test_every_pair_of_states(old: Status, new: Status) -> None:
    assert allowed(old, new) is (old == new or new in EXPECTED[old])
    assert ((old, new) in MOVES) is (new in EXPECTED[old])


def test_every_move_has_a_verb_and_every_verb_a_move() -> None:
    assert all(MOVES.values())
    assert {verb for verbs in MOVES.values() for verb in verbs} == set(Verb)


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        MOVES[Status.DONE, Status.HELD] = ()  # type: ignore[index]


def test_live_is_what_a_claim_looks_at() -> None:
    assert {"pending", "running"} == LIVE
