"""Workers that are killed, stopped or fail: what the next delivery is told."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.guard_cases.conftest import Case

import semel
from semel import AcceptDuplicate, AcceptMiss, Held, InProgress, NotDone
from semel.store.guard_views import count_waiting
from semel.store.own_connections import open_own
from semel.store.run import run


def waiting(case: Case) -> tuple[int, int, int]:
    """Held, stale and released ones that `semel operations stale` counts for the case's job type."""
    own = open_own(case.target)
    with own.session() as session:
        found = run(count_waiting(idle=timedelta(minutes=10)), session)
    own.close()
    return next(
        ((each.held, each.stale, each.released) for each in found if each.job_type == case.job), (0, 0, 0)
    )


def test_c08_a_kill_before_acting_blocks_for_one_lease_and_then_acts(case: Case) -> None:
    charge = case.charge()
    case.dies("claimed", lambda: charge(1))
    for passed in (0, 30):
        case.later(passed)
        with pytest.raises(InProgress) as told:
            charge(1)
        assert told.value.retry_after.total_seconds() > 0
    case.later(31)
    assert charge(1) == "charge of 1"
    assert case.events() == ["takeover"]


def test_c58_a_claim_is_no_completion(case: Case) -> None:
    charge = case.charge()
    case.dies("claimed", lambda: charge(1))
    assert (case.state, case.effects) == ("claimed", [])
    case.later(61)
    charge(1)
    assert (case.state, len(case.effects)) == ("completed", 1)


def test_c58_each_outside_call_of_a_job_has_a_record_of_its_own(case: Case) -> None:
    def job() -> None:
        for part in ("charge", "mail", "ship"):
            with case.claim(None, 1, part) as op:
                if op.is_repeat:
                    continue
                with op.acting():
                    case.effect(part)
                op.done(part)
            case.at(part)

    case.dies("charge", job)
    job()
    assert case.effects == ["charge", "mail", "ship"]


def test_c11_a_kill_after_the_effect_is_seen_by_the_record_alone(case: Case) -> None:
    """Without any flag of a broker's and without a result that somebody stored."""
    charge = case.charge()
    case.dies("acted", lambda: charge(1))
    case.later(61)
    with pytest.raises(Held):
        charge(1)
    assert len(case.effects) == 1


def test_c06_a_kill_without_a_redelivery_is_listed_as_stale(case: Case) -> None:
    charge = case.charge()
    case.dies("acting", lambda: charge(1))
    case.later(61)
    assert waiting(case) == (0, 0, 0), "not at once: a redelivery may come"
    case.later(11 * 60)
    assert waiting(case) == (0, 1, 0)


def test_c06_an_operation_that_kills_its_workers_ends_held(case: Case) -> None:
    charge = case.charge(max_takeovers=2)
    for _ in range(3):
        case.dies("claimed", lambda: charge(1))
        case.later(61)
    with pytest.raises(Held, match="taken over 2 times"):
        charge(1)
    assert case.effects == []


def test_c09_a_killed_tick_does_not_stop_the_next_ones(case: Case) -> None:
    export = case.charge(key=lambda order, **_: ("export", order))
    case.dies("claimed", lambda: export("12:00"))
    for minute in range(1, 5):
        export(f"12:0{minute}")
    assert len(case.effects) == 4
    case.later(11 * 60 + 60)
    assert waiting(case) == (0, 1, 0)


def test_c17_a_claim_without_a_lease_cannot_be_stored(case: Case) -> None:
    charge = case.charge()
    case.dies("claimed", lambda: charge(1))
    with pytest.raises(Exception, match=r"(?i)not.null|cannot be null"):
        case.ask(f"UPDATE {case.operations} SET lease_until = NULL WHERE job_type = '{case.job}'")


def test_c30_a_killed_job_that_nobody_delivers_again_can_be_redone_by_a_person(case: Case) -> None:
    from semel.core.people import Act
    from semel.operate.held import resolve
    from semel.store.guard_people import Decision

    charge = case.charge()
    case.dies("acting", lambda: charge(1))
    case.later(11 * 60 + 60)
    assert waiting(case) == (0, 1, 0)
    own = open_own(case.target)
    with own.session() as session:
        decision = Decision(
            operation_id=case.column("id"), act=Act.REDO, seen=1, who="ann", why="the provider has nothing"
        )
        resolve(session, decision)
    own.close()
    assert case.state == "released"
    assert charge(1) == "charge of 1"


def test_c37_a_stale_claim_is_stale_by_its_own_lease_and_by_default_held(case: Case) -> None:
    """Whatever host or process made it: the same process is no sign of life, another one no reason to wait."""
    charge = case.charge()

    def the_same_process() -> None:
        case.later(61)
        with pytest.raises(Held):
            charge(1)

    case.hooks["acting"] = the_same_process
    charge(1)


@pytest.mark.parametrize(
    "error", [TypeError("a bug"), KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()], ids=repr
)
def test_f23_before_acting_whatever_is_raised_means_that_nothing_happened(
    case: Case, error: BaseException
) -> None:
    charge = case.charge()

    def fail() -> None:
        raise error

    case.hooks["claimed"] = fail
    with pytest.raises(type(error)):
        charge(1)
    assert (case.state, case.effects) == ("released", [])
    assert charge(1) == "charge of 1"


@pytest.mark.parametrize(
    "error", [ValueError("a bug"), KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()], ids=repr
)
def test_f23_after_acting_whatever_is_raised_leaves_it_uncertain(case: Case, error: BaseException) -> None:
    charge = case.charge()

    def fail() -> None:
        raise error

    case.hooks["acted"] = fail
    with pytest.raises(type(error)):
        charge(1)
    assert (case.state, case.column("unsure")) == ("claimed", 1)
    with pytest.raises(Held):
        charge(1)  # at once: the attempt has said that it cannot tell
    assert len(case.effects) == 1


def test_c21_an_exception_after_the_effect_keeps_the_claim(case: Case) -> None:
    @case.once.operation(case.job, key="order")
    def count(op: semel.Operation, order: int) -> None:
        case.effect(op.reference)
        raise ValueError("after the effect")

    with pytest.raises(ValueError, match="after the effect"):
        count(1)
    with pytest.raises(Held):
        count(1)
    assert len(case.effects) == 1


class Declined(Exception):
    pass


@pytest.mark.parametrize("error", [NotDone("declined"), Declined("declined")], ids=["NotDone", "listed"])
def test_c47_what_certainly_did_not_happen_is_released(case: Case, error: Exception) -> None:
    charge = case.charge(not_done=[Declined])

    def fail() -> None:
        raise error

    case.hooks["acting"] = fail
    with pytest.raises(type(error)):
        charge(1)
    assert case.state == "released"
    assert charge(1) == "charge of 1"
    assert len(case.effects) == 1


def test_c47_a_crash_blocks_for_a_lease_and_not_for_the_retention(case: Case) -> None:
    charge = case.charge(AcceptDuplicate())
    case.dies("acting", lambda: charge(1))
    case.later(61)
    assert charge(1) == "charge of 1"


def test_c54_where_nobody_can_be_asked_the_policy_counts(case: Case) -> None:
    def refused() -> None:
        raise ConnectionResetError("connection reset")

    counted = {}
    for effect in (AcceptDuplicate(), AcceptMiss(), semel.Hold()):
        mail = case.charge(effect)
        before = len(case.effects)
        case.hooks["acted"] = refused
        with pytest.raises(ConnectionResetError):
            mail(effect.name)
        try:
            mail(effect.name)
        except Held:
            pass
        try:
            mail(effect.name)
        except Held:
            pass
        counted[effect.name] = len(case.effects) - before
    assert counted == {"accept_duplicate": 2, "accept_miss": 1, "hold": 1}
    ends = case.ask(f"SELECT state, outcome FROM {case.operations} WHERE job_type = '{case.job}' ORDER BY id")
    assert [tuple(row) for row in ends] == [("completed", "acted"), ("completed", "missed"), ("held", None)]


def test_f20_completed_means_that_the_function_came_to_its_end(case: Case) -> None:
    charge = case.charge()
    seen = []
    case.hooks["acted"] = lambda: seen.append(case.state)
    charge(1)
    assert (seen, case.state) == (["claimed"], "completed")


def test_f22_a_completion_needs_no_result(case: Case) -> None:
    @case.once.operation(case.job, key="order")
    def notify(op: semel.Operation, order: int) -> None:
        case.effect(op.reference)

    assert [notify(1), notify(1)] == [None, None]
    assert len(case.effects) == 1


@pytest.mark.parametrize("result", [object(), "x" * 70_000], ids=["no JSON", "too long"])
def test_f67_a_result_that_cannot_be_stored_completes_all_the_same(case: Case, result: object) -> None:
    @case.once.operation(case.job, key="order")
    def notify(op: semel.Operation, order: int):
        case.effect(op.reference)
        return result

    assert notify(1) is result
    assert notify(1) is None
    assert len(case.effects) == 1
    assert case.column("result_dropped")


@pytest.mark.parametrize(
    "effect", [AcceptDuplicate(extra=3), semel.ProviderKey(valid_for="24 h")], ids=lambda e: e.name
)
@pytest.mark.parametrize("point", ["claimed", "acting"])
def test_f17_an_attempt_after_a_doubtful_one_cannot_say_that_nothing_happened(
    case: Case, effect: semel.ProviderKey, point: str
) -> None:
    charge = case.charge(effect)
    case.dies("acted", lambda: charge(1))
    case.later(61)

    def fail() -> None:
        raise NotDone("this call was refused")

    case.hooks[point] = fail
    with pytest.raises(NotDone):
        charge(1)
    assert (case.state, case.column("unsure")) == ("claimed", 1)
    assert len(case.effects) == 1
