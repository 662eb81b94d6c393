"""The table of moves: every state and event, in the order of checks that is binding."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from semel.core.effects import AcceptDuplicate, AcceptMiss, Answer, Hold, Lookup, ProviderKey, Row
from semel.core.operations import (
    Limits,
    Move,
    Outcome,
    Record,
    Reply,
    State,
    begin,
    failed,
    found,
    leaves_doubt,
    may_resend,
    person_may,
)

LOOKUP = Lookup(find=print, settle="30 s", looks=3, backoff="10 s")
KEYED = ProviderKey(valid_for="1 h")
EFFECTS = [Row(), Hold(), LOOKUP, KEYED, AcceptDuplicate(), AcceptMiss()]
RUN = timedelta(seconds=60)


def record(**given):
    plain = {
        "state": State.CLAIMED,
        "revision": 1,
        "claim": 1,
        "mine": False,
        "same_payload": True,
        "lease_left": -1.0,
        "acting": True,
        "reference": "r",
        "reference_age": 100.0,
    }
    return Record(**{**plain, **given})


def decide(effect=None, /, **given):
    limits = given.pop("limits", Limits())
    known = given.pop("payload_known", True)
    return begin(record(**given), effect or Hold(), longest_run=RUN, limits=limits, payload_known=known)


@pytest.mark.parametrize("effect", EFFECTS)
class TestWhateverTheEffect:
    def test_no_record_is_claimed(self, effect):
        decision = begin(None, effect, longest_run=RUN, limits=Limits())
        assert (decision.move, decision.reply, decision.event) == (Move.INSERT, Reply.ACT, None)

    @pytest.mark.parametrize("lease_left", [5.0, -5.0])
    @pytest.mark.parametrize("same_payload", [True, False])
    def test_my_own_claim_is_renewed(self, effect, lease_left, same_payload):
        decision = decide(effect, mine=True, lease_left=lease_left, same_payload=same_payload)
        assert (decision.move, decision.reply, decision.event) == (Move.RENEW, Reply.ACT, None)

    def test_a_released_one_is_claimed(self, effect):
        decision = decide(effect, state=State.RELEASED, acting=False)
        assert (decision.move, decision.reply, decision.event) == (Move.CLAIM, Reply.ACT, None)
        assert not decision.new_reference

    def test_a_released_one_takes_another_payload_with_a_new_reference(self, effect):
        decision = decide(effect, state=State.RELEASED, same_payload=False)
        assert (decision.move, decision.event) == (Move.CLAIM, "payload_changed")
        assert decision.new_reference

    @pytest.mark.parametrize("state", [State.CLAIMED, State.HELD, State.COMPLETED])
    @pytest.mark.parametrize("lease_left", [5.0, -5.0])
    def test_another_payload_comes_before_all_the_rest(self, effect, state, lease_left):
        outcome = Outcome.ACTED if state is State.COMPLETED else None
        decision = decide(effect, state=state, same_payload=False, lease_left=lease_left, outcome=outcome)
        assert (decision.move, decision.reply, decision.event) == (Move.NOTHING, Reply.MISMATCH, "refused")

    def test_without_a_fingerprint_nothing_mismatches(self, effect):
        assert (
            decide(effect, same_payload=False, payload_known=False, lease_left=5.0).reply is Reply.IN_PROGRESS
        )

    @pytest.mark.parametrize("outcome", list(Outcome))
    def test_a_completed_one_is_repeated_or_abandoned(self, effect, outcome):
        decision = decide(effect, state=State.COMPLETED, outcome=outcome)
        expected = Reply.ABANDONED if outcome is Outcome.ABANDONED else Reply.REPEAT
        assert (decision.move, decision.reply, decision.event) == (Move.NOTHING, expected, None)

    def test_a_held_one_stays_held(self, effect):
        decision = decide(effect, state=State.HELD, lease_left=-99.0)
        assert (decision.move, decision.reply, decision.event) == (Move.NOTHING, Reply.HELD, "refused")

    @pytest.mark.parametrize("acting", [True, False])
    def test_a_running_lease_is_waited_for(self, effect, acting):
        decision = decide(effect, lease_left=12.5, acting=acting)
        assert (decision.move, decision.reply) == (Move.NOTHING, Reply.IN_PROGRESS)
        assert decision.wait == timedelta(seconds=12.5)

    def test_one_that_committed_midway_is_held_even_before_acting(self, effect):
        decision = decide(effect, committed_midway=True, acting=False)
        assert (decision.move, decision.reply, decision.event) == (Move.HOLD, Reply.HELD, "held")

    @pytest.mark.parametrize(
        ("acting", "reached"), list(product([True, False], [{"unsure": 3}, {"takeovers": 5}]))
    )
    def test_the_limits_end_in_held(self, effect, acting, reached):
        assert decide(effect, acting=acting, **reached).move is Move.HOLD

    def test_before_the_point_of_no_return_the_next_acts_whatever_the_policy(self, effect):
        decision = decide(effect, acting=False, unsure=2, takeovers=4)
        assert (decision.move, decision.reply, decision.event) == (Move.TAKE_OVER, Reply.ACT, "takeover")
        assert not decision.use_extra
        assert not decision.new_reference


@pytest.mark.parametrize("effect", [Hold(), Row()])
def test_stale_is_held(effect):
    assert decide(effect).move is Move.HOLD


def test_stale_with_a_provider_key_is_sent_again_within_its_window():
    decision = decide(KEYED, reference_age=3600 - 60 - 1)
    assert (decision.move, decision.reply) == (Move.TAKE_OVER, Reply.ACT)
    assert not decision.new_reference


def test_the_longest_run_counts_within_the_window():
    assert decide(KEYED, reference_age=3600 - 60).move is Move.HOLD
    then_look = ProviderKey(valid_for="1 h", then=LOOKUP)
    assert decide(then_look, reference_age=3541.0, lease_left=-31.0).move is Move.TAKE_OVER_TO_LOOK
    assert not may_resend(record(reference_age=3540.0), KEYED, longest_run=RUN)
    assert may_resend(record(reference_age=3539.0), KEYED, longest_run=RUN)
    assert may_resend(record(reference_age=9e9), AcceptDuplicate(), longest_run=RUN)


def test_accepted_duplicates_are_counted():
    effect = AcceptDuplicate(extra=2)
    assert decide(effect, extra_used=1).use_extra
    assert decide(effect, extra_used=2).move is Move.HOLD


def test_an_accepted_miss_is_completed_without_acting():
    decision = decide(AcceptMiss())
    assert (decision.move, decision.reply, decision.event) == (Move.MISS, Reply.REPEAT, "missed")


@pytest.mark.parametrize(
    "since",
    [{"lease_left": -10.0}, {"lease_left": -500.0, "unsure_for": 10.0}],
    ids=["its lease", "an earlier chance"],
)
def test_a_lookup_waits_for_the_settle_time_of_the_last_chance(since):
    decision = decide(LOOKUP, **since)
    assert (decision.move, decision.reply) == (Move.NOTHING, Reply.IN_PROGRESS)
    assert decision.wait == timedelta(seconds=20)


@pytest.mark.parametrize("since", [{"lease_left": -30.0}, {"lease_left": -1.0, "unsure_for": 31.0}])
def test_a_settled_one_is_taken_over_to_look(since):
    decision = decide(LOOKUP, **since)
    assert (decision.move, decision.reply) == (Move.TAKE_OVER_TO_LOOK, Reply.LOOK)


def test_looks_that_killed_their_workers_count():
    assert decide(LOOKUP, lease_left=-99.0, looks=3).move is Move.HOLD


@pytest.mark.parametrize("effect", [LOOKUP, ProviderKey(valid_for=1, then=LOOKUP)])
def test_my_claim_to_look_looks_when_its_acknowledgement_was_lost(effect):
    """It may not act: nobody has been asked yet."""
    decision = decide(effect, mine=True, lease_left=9.0, unsure_for=40.0, looks=1)
    assert (decision.move, decision.reply) == (Move.RENEW, Reply.LOOK)


def test_my_claim_in_doubt_is_not_renewed_past_the_provider_s_window():
    late = {"mine": True, "takeovers": 1, "reference_age": 3600.0}
    assert decide(KEYED, **late).move is Move.HOLD
    assert decide(KEYED, **late, lease_left=5.0).reply is Reply.IN_PROGRESS
    assert decide(KEYED, **{**late, "takeovers": 0}).move is Move.RENEW


def test_what_a_lookup_found_leads_to():
    done = found(LOOKUP, record(mine=True, looks=1), Answer.DONE)
    assert (done.move, done.reply, done.event) == (Move.COMPLETE_FOUND, Reply.REPEAT, "looked")
    not_done = found(LOOKUP, record(mine=True, looks=3), Answer.NOT_DONE)
    assert (not_done.move, not_done.reply, not_done.new_reference) == (Move.ACT, Reply.ACT, True)
    unknown = found(LOOKUP, record(mine=True, looks=2), Answer.UNKNOWN)
    assert (unknown.move, unknown.reply, unknown.wait) == (
        Move.LOOK_LATER,
        Reply.IN_PROGRESS,
        timedelta(seconds=20),
    )
    assert found(LOOKUP, record(mine=True, looks=3), Answer.UNKNOWN).move is Move.HOLD


@pytest.mark.parametrize(
    ("acting", "not_done", "in_doubt", "move"),
    [
        (False, False, False, Move.RELEASE),
        (False, True, False, Move.RELEASE),
        (True, True, False, Move.RELEASE),
        (True, False, False, Move.UNCERTAIN),
        (True, True, True, Move.UNCERTAIN),
        (False, False, True, Move.UNCERTAIN),
    ],
)
def test_what_an_exception_leads_to(acting, not_done, in_doubt, move):
    assert failed(acting=acting, not_done=not_done, in_doubt=in_doubt) is move


def test_who_is_in_doubt():
    assert leaves_doubt(record(acting=True), Move.TAKE_OVER)
    assert not leaves_doubt(record(acting=False), Move.TAKE_OVER)
    assert not leaves_doubt(record(acting=True), Move.CLAIM)
    assert leaves_doubt(record(acting=True, takeovers=1), Move.RENEW)
    assert not leaves_doubt(record(acting=True), Move.RENEW)


@pytest.mark.parametrize(
    ("state", "lease_left", "acts"),
    [
        (State.HELD, 5.0, {"done", "redo", "abandon"}),
        (State.CLAIMED, 0.0, {"done", "redo", "abandon"}),
        (State.CLAIMED, 5.0, set()),
        (State.RELEASED, -5.0, {"done", "abandon"}),
        (State.COMPLETED, -5.0, set()),
    ],
)
def test_when_a_person_decides(state, lease_left, acts):
    standing = record(state=state, lease_left=lease_left)
    assert {act for act in ("done", "redo", "abandon") if person_may(standing, act)} == acts


@pytest.mark.parametrize("lease_left", [0.0, -0.001])
def test_a_lease_that_ends_now_is_over(lease_left):
    assert record(lease_left=lease_left).stale
    assert not record(lease_left=0.001).stale
    assert not record(state=State.HELD, lease_left=lease_left).stale
