"""Who owns an operation: refused rivals, late finishers, takeovers, leases."""

from __future__ import annotations

import logging
import time

import pytest
from tests.guard_cases.conftest import Case
from tests.support.waiting import until

import semel
from semel import AcceptDuplicate, ClaimLost, ConfigurationError, Held, InProgress
from semel.errors import DatabaseUnreachable


def test_c29_a_late_finisher_leaves_the_newer_claim_alone(case: Case) -> None:
    a, b = (case.claim(AcceptDuplicate(), lease="5 s") for _ in range(2))
    op_a = a.__enter__()
    with op_a.acting():
        pass
    case.later(6)
    op_b = b.__enter__()
    with op_b.acting():
        pass
    owner = case.column("token")
    with pytest.raises(ClaimLost):
        op_a.done("a")
    a.__exit__(None, None, None) if op_a.completed else None
    with pytest.raises(InProgress):
        case.claim(AcceptDuplicate()).__enter__()
    assert case.column("token") == owner
    op_b.done("b")
    b.__exit__(None, None, None)
    assert (case.state, case.outcome) == ("completed", "acted")
    assert case.evidence() == [{"outcome": "acted", "result": '"a"'}]


def test_c45_of_two_attempts_one_says_that_it_did_it(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    charge = case.charge(AcceptDuplicate())
    answers: list[object] = []

    def rival() -> None:
        case.later(61)
        answers.append(charge(1))

    case.hooks["acted"] = rival
    with caplog.at_level(logging.INFO), pytest.raises(ClaimLost):
        charge(1)
    assert answers == ["charge of 1"]
    assert case.events().count("evidence") == 1, "a repeat in the past that can be counted"


def test_c43_a_success_after_the_lease_counts_where_nobody_took_over(case: Case) -> None:
    charge = case.charge()
    case.hooks["acted"] = lambda: case.later(90)
    assert charge(1) == "charge of 1"
    assert (case.state, case.outcome) == ("completed", "acted")
    assert case.events() == ["late"]


def test_f04_a_late_success_answers_what_a_person_was_asked(case: Case) -> None:
    charge = case.charge()

    def held_meanwhile() -> None:
        case.later(90)
        with pytest.raises(Held):
            charge(1)
        assert case.state == "held"

    case.hooks["acted"] = held_meanwhile
    assert charge(1) == "charge of 1"
    assert (case.state, case.outcome) == ("completed", "acted")
    assert case.events()[-1] == "late_finish"


def test_c19_a_refused_delivery_changes_nothing_of_the_owners(case: Case) -> None:
    charge = case.charge()

    def rivals() -> None:
        before = (case.column("token"), case.column("revision"), case.column("lease_until"))
        for _ in range(2):
            with pytest.raises(InProgress):
                charge(1)
        assert (case.column("token"), case.column("revision"), case.column("lease_until")) == before

    case.hooks["acting"] = rivals
    charge(1)
    assert len(case.effects) == 1


def test_f06_the_same_delivery_again_is_another_attempt(case: Case) -> None:
    """No id of a job, a message or a host makes two attempts one."""
    first, second = case.claim(), case.claim()
    op = first.__enter__()
    with pytest.raises(InProgress):
        second.__enter__()
    op.done(None)
    first.__exit__(None, None, None)


def test_f08_my_own_claim_after_a_lost_acknowledgement_is_mine(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    import semel.guard.places as places

    real, lost = places.run, []

    def run(operation, session):
        answer = real(operation, session)
        if operation.name == "guard_begin_new" and not lost:
            lost.append(answer)
            raise DatabaseUnreachable("The connection ended after the commit.")
        return answer

    monkeypatch.setattr(places, "run", run)
    assert case.charge()(1) == "charge of 1"
    assert lost
    assert len(case.effects) == 1
    assert case.column("claim") == 1


def test_f08_a_completion_whose_acknowledgement_was_lost_is_a_success(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    import semel.guard.places as places

    real, lost = places.run, []

    def run(operation, session):
        answer = real(operation, session)
        if operation.name == "guard_complete" and not lost:
            lost.append(answer)
            raise DatabaseUnreachable("The connection ended after the commit.")
        return answer

    monkeypatch.setattr(places, "run", run)
    assert case.charge()(1) == "charge of 1"
    assert lost
    assert (case.state, case.outcome) == ("completed", "acted")


def test_c28_a_paused_attempt_hears_of_it_before_it_calls_outside(case: Case) -> None:
    charge = case.charge()

    def rival() -> None:
        case.later(180)  # three leases without a sign of life
        assert charge(1) == "charge of 1"

    case.hooks["claimed"] = rival
    with pytest.raises(ClaimLost):
        charge(1)
    assert len(case.effects) == 1


def test_c03_while_an_attempt_holds_its_lease_others_are_told_when_to_come_again(case: Case) -> None:
    charge = case.charge(lease="40 s")

    def deliveries() -> None:
        for left in (30, 20):
            case.later(10)
            with pytest.raises(InProgress) as told:
                charge(1)
            assert left - 5 < told.value.retry_after.total_seconds() <= left

    case.hooks["acting"] = deliveries
    charge(1)
    assert len(case.effects) == 1


def test_c05_a_second_delivery_is_in_progress_and_then_a_repeat(case: Case) -> None:
    charge = case.charge()

    def second() -> None:
        with pytest.raises(InProgress):
            charge(1)

    case.hooks["acted"] = second
    assert [charge(1), charge(1)] == ["charge of 1"] * 2
    assert len(case.effects) == 1


def test_c39_a_lease_shorter_than_the_longest_run_is_refused(case: Case) -> None:
    with pytest.raises(ConfigurationError, match="nobody extends it"):
        case.charge(lease="4 s", longest_run="6 s")
    extended = case.charge(lease="4 s", longest_run="6 s", extend=True)
    assert extended(1) == "charge of 1"


def test_c03_a_lease_that_ended_leads_to_the_policy(case: Case) -> None:
    """Not to a second run, whatever was forced."""
    charge = case.charge(lease="8 s", longest_run="8 s")

    def second() -> None:
        case.later(10)
        with pytest.raises(Held):
            charge(1)

    case.hooks["acted"] = second
    charge(1)
    assert len(case.effects) == 1


def test_f12_a_hung_attempt_is_extended_for_its_longest_run_only(case: Case) -> None:
    hung = case.charge(AcceptDuplicate(), lease="0.3 s", longest_run="0.4 s", extend=True)

    def hang() -> None:
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            try:
                case.claim(AcceptDuplicate()).__enter__().done("by another")
            except InProgress:
                time.sleep(0.05)
            else:
                return
        pytest.fail("nobody could take over")

    case.hooks["acting"] = hang
    with pytest.raises(ClaimLost):
        hung(1)


@pytest.mark.parametrize("wrong", [-3600, 3600], ids=["behind", "ahead"])
def test_f15_a_clock_of_the_process_decides_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    """On SQLite Python's clock alone: the database's is the machine's."""
    charge, real = case.charge(), time.time

    def rival() -> None:
        monkeypatch.setattr(time, "time", lambda: real() + wrong)
        with pytest.raises(InProgress) as told:
            charge(1)
        assert 50 < told.value.retry_after.total_seconds() <= 60
        monkeypatch.undo()

    case.hooks["acting"] = rival
    charge(1)
    assert len(case.effects) == 1


def test_f16_a_write_that_is_no_sign_of_life_moves_no_lease(case: Case) -> None:
    charge = case.charge()

    def touched() -> None:
        case.later(61)
        now = case.words.ago(0)
        case.ask(f"UPDATE {case.operations} SET changed_at = {now} WHERE job_type = '{case.job}'")
        with pytest.raises(Held):
            charge(1)

    case.hooks["acting"] = touched
    charge(1)


def test_f09_a_payload_that_the_function_changes_is_still_the_one_it_came_with(case: Case) -> None:
    @case.once.operation(case.job, key="order", payload=("lines",), acting="explicit")
    def ship(op: semel.Operation, order: int, lines: list[str]) -> int:
        with op.acting():
            case.effect(op.reference)
        lines.append("postage")
        return op.done(len(lines))

    assert ship(1, ["a", "b"]) == 3
    assert ship(1, ["a", "b"]) == 3
    assert len(case.effects) == 1


def test_c57_a_burst_of_deliveries_has_one_effect(case: Case) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    charge, barrier = case.charge(), Barrier(5)

    def deliver(order: int) -> str:
        barrier.wait()
        try:
            return str(charge(order))
        except InProgress:  # and Busy
            return "in progress"

    with ThreadPoolExecutor(5) as pool:
        for order in range(10):
            answers = list(pool.map(deliver, [order] * 5))
            assert set(answers) <= {f"charge of {order}", "in progress"}
    assert len(case.effects) == 10
    assert len(set(case.effects)) == 10


def test_f11_a_forked_process_extends_its_own_leases(case: Case) -> None:
    """A thread does not live on in a fork."""
    import os
    import threading

    charge = case.charge(lease="0.9 s", longest_run="30 s", extend=True)
    first = threading.Event()
    case.hooks["acting"] = first.wait
    parent = threading.Thread(target=charge, args=(1,))
    parent.start()
    until(lambda: not case.hooks, "the parent is inside its call")
    begun = case.column("lease_until")
    until(
        lambda: case.column("lease_until") > begun, "the parent's lease was extended: it is between two beats"
    )
    child = os.fork()
    if child == 0:
        try:
            case.hooks = {"acting": lambda: time.sleep(2)}
            charge(2)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    first.set()
    parent.join()
    rows = case.ask(
        f"SELECT state FROM {case.operations} WHERE job_type = '{case.job}' AND completed_at <= lease_until"
    )
    assert [row[0] for row in rows] == ["completed"] * 2
