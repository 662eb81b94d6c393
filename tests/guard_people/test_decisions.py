"""Each decision in each state, on each database; and what comes back late."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.guard_people.conftest import ME, STATES, Inbox

from semel.core.operations import Outcome, Reply, State
from semel.errors import ConfigurationError, NotFound, WrongState
from semel.operate.held import Resolved, abandon, done, redact, redo
from semel.store.guard_begin import begin_known
from semel.store.guard_end import act as pass_point
from semel.store.guard_end import complete, complete_late, release, uncertain
from semel.store.guard_request import Lost, Written

ACTS: dict[str, Callable[..., Resolved]] = {"done": done, "redo": redo, "abandon": abandon}
ALLOWED = {
    "claimed": (),
    "stale": ("done", "redo", "abandon"),
    "held": ("done", "redo", "abandon"),
    "released": ("done", "abandon"),
    "unclaimed": ("done", "redo", "abandon"),
    "completed": (),
}
"""The table H of moves: what a person may do in each state."""


@pytest.mark.parametrize("name", list(ACTS))
@pytest.mark.parametrize("state", ["stale", "held"])
def test_what_the_same_attempt_wrote_since_it_was_shown_is_to_be_looked_at(
    inbox: Inbox, state: str, name: str
) -> None:
    """Its claim number is the same: it woke, acted and died; or it came back to a held one and said how it had ended."""
    made, request = inbox.make(state)
    shown = inbox.get(made).operation
    if state == "stale":
        assert inbox.run(pass_point(request))
        inbox.shift(made, "lease_until", 760)
    else:
        assert isinstance(inbox.run(uncertain(request, error="TimeoutError")), Lost)
    now = inbox.get(made).operation
    assert (now.claim, now.state) == (shown.claim, shown.state)
    options = {"seen_revision": shown.revision}
    with pytest.raises(WrongState, match="it was written since it was shown") as caught:
        inbox.act(ACTS[name], made, shown.claim, ME, "I looked", **options)
    assert "show" in caught.value.remedy
    assert inbox.get(made).operation == now
    assert inbox.events(made)[-1] == ("refused", ME, "I looked")
    inbox.act(ACTS[name], made, now.claim, ME, "I looked again", seen_revision=now.revision)
    assert inbox.events(made)[-1] == (name, ME, "I looked again")


def test_a_decision_by_the_claim_alone_does_not_notice_it(inbox: Inbox) -> None:
    made, request = inbox.make("held")
    shown = inbox.get(made).operation
    inbox.run(uncertain(request, error="TimeoutError"))
    assert inbox.act(redo, made, shown.claim, ME, "I looked").after is State.RELEASED


@pytest.mark.parametrize("name", list(ACTS))
@pytest.mark.parametrize("state", STATES)
def test_each_decision_in_each_state(inbox: Inbox, state: str, name: str) -> None:
    made, request = inbox.make(state)
    before = inbox.get(made)
    past = inbox.events(made)
    if name not in ALLOWED[state]:
        with pytest.raises(WrongState, match=r"cannot be decided"):
            inbox.act(ACTS[name], made, before.operation.claim, ME, "I looked")
        after = inbox.get(made)
        assert after.operation == before.operation
        assert inbox.events(made) == [*past, ("refused", ME, "I looked")]
        assert after.events[-1].detail["act"] == name
        return
    resolved = inbox.act(ACTS[name], made, before.operation.claim, ME, "I looked")
    after = inbox.get(made)
    assert inbox.events(made) == [*past, (name, ME, "I looked")]
    assert resolved.before == before.operation.state
    assert (resolved.after, resolved.claim) == (after.operation.state, after.operation.claim)
    if name == "redo":
        assert after.operation.state is State.RELEASED
        assert after.operation.claim == before.operation.claim + 1
        assert after.operation.acting_at is None
        assert after.message == before.message
    else:
        assert after.operation.state is State.COMPLETED
        assert after.operation.outcome is (Outcome.BY_PERSON if name == "done" else Outcome.ABANDONED)
        assert after.operation.claim == before.operation.claim
        assert after.message is None
    again = inbox.run(begin_known(inbox.again(request)))
    assert again.reply is {"done": Reply.REPEAT, "redo": Reply.ACT, "abandon": Reply.ABANDONED}[name]


def test_done_can_say_the_result(inbox: Inbox) -> None:
    made, request = inbox.make("held")
    inbox.act(done, made, 1, ME, "found it", result={"charge": "ch_7"})
    assert inbox.get(made).result == {"charge": "ch_7"}
    assert inbox.run(begin_known(inbox.again(request))).record.result == {"charge": "ch_7"}
    other, _ = inbox.make("held")
    with pytest.raises(ConfigurationError, match="no JSON"):
        inbox.act(done, other, 1, ME, "found it", result=object())


def test_a_decision_needs_a_reason_and_an_operation(inbox: Inbox) -> None:
    made, _ = inbox.make("held")
    with pytest.raises(ConfigurationError, match="reason"):
        inbox.act(done, made, 1, ME, " ")
    with pytest.raises(NotFound):
        inbox.act(done, 987_654, 1, ME, "x")


def test_a_decision_about_another_claim_is_refused(inbox: Inbox) -> None:
    made, _ = inbox.make("held")
    inbox.act(redo, made, 1, ME, "not there")
    with pytest.raises(WrongState, match="claim 2 now, no longer 1"):
        inbox.act(done, made, 1, "bob@desk", "it is there")
    assert inbox.get(made).operation.state is State.RELEASED
    assert inbox.events(made)[-1] == ("refused", "bob@desk", "it is there")


@pytest.mark.parametrize(("first", "second"), [("done", "redo"), ("redo", "redo"), ("abandon", "done")])
def test_of_two_people_at_once_one_wins(inbox: Inbox, first: str, second: str) -> None:
    for _ in range(5):
        made, _ = inbox.make("held")
        barrier = threading.Barrier(2)
        answers: dict[int, Any] = {}

        def decide(
            place: int, name: str, made: int = made, barrier: Any = barrier, answers: Any = answers
        ) -> None:
            barrier.wait()
            try:
                answers[place] = inbox.act(ACTS[name], made, 1, f"person {place}", "I looked")
            except WrongState as error:
                answers[place] = error

        people = [threading.Thread(target=decide, args=pair) for pair in enumerate((first, second))]
        for person in people:
            person.start()
        for person in people:
            person.join()
        assert sorted(isinstance(answer, WrongState) for answer in answers.values()) == [False, True]
        decided = [event for event in inbox.events(made) if event[0] in ACTS]
        assert len(decided) == 1


@pytest.mark.parametrize("name", list(ACTS))
def test_who_finishes_after_a_decision_loses_and_leaves_evidence(inbox: Inbox, name: str) -> None:
    made, request = inbox.make("held")
    inbox.act(ACTS[name], made, 1, ME, "I looked")
    state = inbox.get(made).operation
    assert not inbox.run(pass_point(request))
    assert not inbox.run(complete(request, result='"late"', result_dropped=False))
    assert isinstance(inbox.run(complete_late(request, result='"late"', result_dropped=False)), Lost)
    after = inbox.get(made)
    assert after.operation == state
    assert after.result is None
    assert after.events[-1].event == "evidence"
    assert after.events[-1].detail["outcome"] == "acted"
    assert isinstance(inbox.run(release(request, error="too late")), Lost)


@pytest.mark.parametrize("name", list(ACTS))
@pytest.mark.parametrize("state", ["held", "stale"])
def test_who_finishes_before_a_decision_is_not_overruled(inbox: Inbox, state: str, name: str) -> None:
    made, request = inbox.make(state)
    assert isinstance(inbox.run(complete_late(request, result='"late"', result_dropped=False)), Written)
    with pytest.raises(WrongState, match="completed"):
        inbox.act(ACTS[name], made, 1, ME, "I looked")
    assert inbox.get(made).result == "late"


def test_redo_starts_the_counts_anew(inbox: Inbox) -> None:
    made, request = inbox.make("held")
    inbox.text(
        f"UPDATE {'semel.operations' if inbox.dialect == 'postgresql' else 'semel_operations'} "
        f"SET unsure = 3, takeovers = 5, looks = 5, extra_used = 1 WHERE id = {made}"
    )
    inbox.act(redo, made, 1, ME, "not there")
    after = inbox.get(made).operation
    assert (after.unsure, after.takeovers, after.looks, after.extra_used) == (0, 0, 0, 1)
    assert (after.reference, after.generation) == (request.reference, 1)


def test_redo_can_give_another_reference(inbox: Inbox) -> None:
    made, request = inbox.make("held")
    inbox.act(redo, made, 1, ME, "the provider remembers a failure", new_reference=True)
    after = inbox.get(made)
    assert after.operation.generation == 2
    assert after.operation.reference != request.reference
    assert after.events[-1].detail == {"before": "held", "old_reference": request.reference}
    begun = inbox.run(begin_known(inbox.again(request)))
    assert begun.reference == after.operation.reference


def test_redo_of_an_unclaimed_one_is_for_one_person(inbox: Inbox) -> None:
    made, _ = inbox.make("unclaimed")
    inbox.act(redo, made, 1, ME, "send it")
    with pytest.raises(WrongState, match="claim 2 now"):
        inbox.act(redo, made, 1, "bob@desk", "send it")
    with pytest.raises(WrongState, match=r"waits for its next delivery \(a redo: in \d+ s\)"):
        inbox.act(redo, made, 2, "bob@desk", "send it")


@pytest.mark.parametrize("state", STATES)
def test_redact(inbox: Inbox, state: str) -> None:
    made, request = inbox.make(state)
    if state == "claimed":
        with pytest.raises(WrongState, match="cannot be redacted"):
            inbox.act(redact, made, ME, "erasure request 7")
        return
    if state == "held":
        inbox.act(complete_late_evidence, request)
    inbox.act(redact, made, ME, "erasure request 7")
    after = inbox.get(made)
    one = after.operation
    assert (after.result, one.label, one.last_error, after.message) == (None, None, None, None)
    assert one.result_dropped == (state == "completed")
    assert one.key == request.key
    assert after.events[-1].event == "redact"
    assert [event.detail for event in after.events] == [None] * len(after.events)
    assert [event.why for event in after.events if event.who is None] == [None] * (len(after.events) - 1)
    repeat = inbox.run(begin_known(inbox.again(request)))
    assert repeat.reply is not None


def complete_late_evidence(session: Any, request: Any) -> None:
    """A stranger's completion, kept as evidence."""
    from dataclasses import replace

    from semel.store.run import run

    stranger = replace(request, token="stranger")
    assert isinstance(run(complete_late(stranger, result='"secret"', result_dropped=False), session), Lost)
