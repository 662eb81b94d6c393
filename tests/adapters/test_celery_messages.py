"""What becomes of a guarded task's message: published again as it was, retried, expired, limited, revoked, decided about."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import chain, chord, group
from celery.exceptions import TaskRevokedError
from kombu import Exchange
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.adapters.celery_rig import CeleryRig, older_python, rabbit_rig, received, redis_rig
from tests.adapters.celery_stages import holding, stale, wait_stale
from tests.guard.conftest import make_database
from tests.guard.stored import Ago
from tests.support.waiting import until

import semel
from semel.core.keys import compute_key
from semel.operate import held
from semel.store.guard_views import list_operations
from semel.store.run import run

__all__ = ["make_database"]


def _make(kind: str, request: pytest.FixtureRequest, database: str, path: Path) -> Any:
    if kind == "rabbitmq":
        return rabbit_rig(request, database, path)
    if kind == "older":
        return redis_rig(request, database, path, python=older_python())
    return redis_rig(request, database, path)


@pytest.fixture(params=["redis", "rabbitmq", "older"])
def each(
    request: pytest.FixtureRequest, make_database: Callable[[str], Any], tmp_path: Path
) -> Iterator[CeleryRig]:
    """A rig on each broker, and on the older Celery."""
    with _make(request.param, request, make_database("postgresql"), tmp_path) as made:
        yield made


@pytest.fixture
def rig(
    request: pytest.FixtureRequest, make_database: Callable[[str], Any], tmp_path: Path
) -> Iterator[CeleryRig]:
    with _make("redis", request, make_database("postgresql"), tmp_path) as made:
        yield made


def test_what_is_published_again_is_the_same_message(each: CeleryRig) -> None:
    each.start(SEMEL_TEST_NOTES="1")
    step = each.app.signature("step", kwargs={"name": "linked"}, queue=each.setup.queue)
    with holding(each, "kept") as holder:
        message = each.send_task(
            "charge_hold",
            {"name": "kept", "amount": 100},
            headers={"tenant": "acme"},
            priority=3,
            expires=300,
            shadow="charge for acme",
            link=[step],
            time_limit=50,
            soft_time_limit=40,
            retries=2,
            root_id="the-root",
            ignore_result=False,
        )
        each.wait_answered("kept", "in_progress", 2)
        holder.end()
    each.wait_answered("kept", "repeat")
    each.wait_idle()
    first, *others = received(each, "kept")
    assert first["id"] == message.id
    assert first["headers"]["tenant"] == "acme"
    assert (first["priority"], first["retries"], first["shadow"]) == (3, 2, "charge for acme")
    assert (first["timelimit"], first["callbacks"], first["root_id"]) == ([50, 40], 1, "the-root")
    assert len(others) >= 2
    assert all(other == first for other in others)
    assert each.result(message) == "by the holder"
    assert each.stage.effects["linked"] == 1


def test_it_is_published_to_the_exchange_that_it_came_from(
    request: pytest.FixtureRequest, make_database: Callable[[str], Any], tmp_path: Path
) -> None:
    """A topic exchange with a routing key of its own."""
    with _make("rabbitmq", request, make_database("postgresql"), tmp_path) as rig:
        name = f"{rig.setup.queue}-topic"
        rig.queues.add(name)
        routed = {
            "task_queues": {name: {"exchange": name, "exchange_type": "topic", "routing_key": "shop.#"}}
        }
        rig.start(queues=name, setup=replace(rig.setup, conf=routed), SEMEL_TEST_NOTES="1")
        with holding(rig, "routed") as holder:
            rig.send("routed", exchange=name, routing_key="shop.eu.charges", queue=None)
            rig.wait_answered("routed", "in_progress", 2)
            holder.end()
        rig.wait_answered("routed", "repeat")
        rig.wait_idle()
        found = {(each["exchange"], each["routing_key"]) for each in received(rig, "routed")}
        assert found == {(name, "shop.eu.charges")}
        with rig.app.connection_for_write() as connection:
            Exchange(name)(connection.default_channel).delete()


def test_a_message_that_expires_meanwhile_is_not_run(rig: CeleryRig) -> None:
    rig.start()
    with holding(rig, "expires"):
        message = rig.send("expires", expires=2)
        rig.wait_answered("expires", "in_progress")
        rig.wait_result(message, "REVOKED")
    rig.wait_idle()
    assert rig.stage.arrived("expires", "claimed") == []


@pytest.mark.parametrize(
    ("task", "options"),
    [("charge_hold", {"countdown": 1}), ("charge_shared", {}), ("charge_based", {})],
    ids=["countdown", "shared and bound", "base class"],
)
def test_each_way_to_make_a_task(each: CeleryRig, task: str, options: dict[str, Any]) -> None:
    each.start()
    messages = [each.send_task(task, {"name": "one"}, **options)]
    each.wait_state("one", "completed acted")
    each.send_again(messages[0])
    each.wait_answered("one", "repeat")
    each.wait_idle()
    made = "charge-one-1"
    assert each.result(messages[0]) in (made, f"charge_shared {made}")
    assert each.stage.effects["one"] == 1


def test_a_retry_before_acting_releases_and_after_it_is_uncertain(each: CeleryRig) -> None:
    each.start()
    before = each.send_task("charge_based_bound", {"name": "before", "retry_at": "before"})
    after = each.send_task("charge_based_bound", {"name": "after", "retry_at": "after"})
    each.wait_state("before", "completed acted")
    each.wait_state("after", "held")
    each.wait_result(after, "FAILURE")
    each.wait_idle()
    assert each.result(before) == "charge-before-1"
    assert each.answered("before", "released") == 1
    assert each.answered("after", "uncertain") == 1
    assert isinstance(each.result_of(after).result, semel.Held)
    assert (each.stage.effects["before"], each.stage.effects["after"]) == (1, 1)


def test_held_fails_for_good_where_every_exception_is_retried(each: CeleryRig) -> None:
    each.start(SEMEL_TEST_NOTES="1")
    each.stage.answer("one", "effect", "raise")
    message = each.send("one")
    each.wait_state("one", "held")
    found = each.wait_result(message, "FAILURE")
    each.wait_idle()
    assert isinstance(found.result, semel.Held)
    assert [told["retries"] for told in received(each, "one")] == [0, 1]
    each.send_again(message)
    each.wait_answered("one", "held", 2)
    each.wait_idle()
    assert len(received(each, "one")) == 3


def test_in_progress_uses_up_no_retry(rig: CeleryRig) -> None:
    """A lease of three seconds, looked at every second: no retry is counted, and the task acts when it may."""
    rig.start(SEMEL_TEST_NOTES="1")
    with holding(rig, "patient") as holder:
        rig.send("patient")
        rig.wait_answered("patient", "in_progress", 3)
        holder.end()
    rig.wait_answered("patient", "repeat")
    assert {told["retries"] for told in received(rig, "patient")} == {0}


def test_a_chain_a_group_and_a_chord(rig: CeleryRig) -> None:
    """One member of each is in progress at first: nothing goes on before it is completed, and then once."""
    rig.start(concurrency=2)
    with ExitStack() as held_back:
        holders = [held_back.enter_context(holding(rig, name)) for name in ("c1", "g1", "m1")]
        line = chain(
            _charge(rig, "c1"), _charge(rig, "c2"), _then(rig, "step", "chain end"), app=rig.app
        ).apply_async()
        many = group([_charge(rig, "g1"), _charge(rig, "g2")], app=rig.app).apply_async()
        both = _chord(rig)
        for name in ("c1", "g1", "m1"):
            rig.wait_answered(name, "in_progress")
        rig.wait_state("m2", "completed acted")
        assert rig.state("c2") == "none"
        assert (rig.stage.effects["body"], rig.stage.effects["chain end"]) == (0, 0)
        for holder in holders:
            holder.end()
        assert both.get(timeout=60) == 2
        assert line.get(timeout=60) == "charge-c2-1"
        assert many.get(timeout=60) == ["by the holder", "charge-g2-1"]
    rig.wait_idle()
    names = ("c2", "g2", "m2", "body", "chain end")
    assert [rig.stage.effects[name] for name in names] == [1] * 5


def test_a_chords_member_that_died_after_its_completion_counts_by_its_repeat(rig: CeleryRig) -> None:
    """Nothing of it had reached the result backend: the chord's body waits for the repeat, and runs once."""
    rig.start(concurrency=2)
    rig.stage.hold("m1", "completed")
    both = _chord(rig)
    os.kill(rig.stage.wait_for("m1", "completed").pid, signal.SIGKILL)
    rig.stage.release("m1", "completed")
    assert both.get(timeout=60) == 2
    rig.wait_idle()
    assert [rig.stage.effects[name] for name in ("m1", "m2", "body")] == [1] * 3
    assert rig.answered("m1", "repeat") == 1


def _charge(rig: CeleryRig, name: str) -> Any:
    return rig.app.signature("charge_hold", kwargs={"name": name}, queue="charges", immutable=True)


def _then(rig: CeleryRig, task: str, name: str) -> Any:
    return rig.app.signature(task, kwargs={"name": name}, queue="charges")


def _chord(rig: CeleryRig) -> Any:
    """Of m1 and m2, whose number its body counts."""
    members = group([_charge(rig, "m1"), _charge(rig, "m2")], app=rig.app)
    return chord(members, _then(rig, "total", "body"), app=rig.app)()


def test_a_repeat_dispatches_the_next_step_again(rig: CeleryRig) -> None:
    """Said in docs/celery.md: the first delivery may have died before it dispatched it."""
    rig.start()
    after = rig.app.signature("step", kwargs={"name": "after"}, queue="charges")
    message = rig.send("one", link=[after])
    rig.stage.wait_until(lambda: rig.stage.effects["after"] == 1, "the step ran")
    rig.send_again(message)
    rig.stage.wait_until(lambda: rig.stage.effects["after"] == 2, "the step ran again")
    assert rig.stage.effects["one"] == 1


def test_an_abandoned_one_ends_revoked_without_a_next_step(each: CeleryRig) -> None:
    each.start()
    each.stage.answer("one", "effect", "raise")
    after = each.app.signature("step", kwargs={"name": "after"}, queue=each.setup.queue)
    message = each.send("one", link=[after])
    each.wait_state("one", "held")
    each.wait_idle()
    with each.session() as session:
        (shown,) = run(list_operations(each.filter("one"), limit=2, before_id=None), session).operations
        held.abandon(session, shown.id, shown.claim, "ada", "paid in cash")
    each.send_again(message)
    found = each.wait_result(message, "REVOKED")
    each.wait_idle()
    assert isinstance(found.result, TaskRevokedError)
    assert "abandoned" in str(found.result)
    assert each.stage.effects["after"] == 0


def test_an_early_acknowledged_one_is_sent_again_from_its_record(rig: CeleryRig) -> None:
    """Celery's default: the broker has nothing left of a killed worker's task. The record has, and a person sends it."""
    worker = rig.start(lease=2)
    rig.stage.hold("lost", "claimed")
    message = rig.send("lost", how="early", headers={"tenant": "acme"}, expires=3)
    rig.stage.wait_for("lost", "claimed")
    worker.kill("group", 0)
    assert rig.pending() == 0
    wait_stale(rig, "lost")
    rig.start(SEMEL_TEST_NOTES="1")
    with rig.session() as session:
        (shown,) = run(list_operations(rig.filter("lost"), limit=2, before_id=None), session).operations
        resender = rig.resender()
        done = held.redo(
            session, shown.id, shown.claim, "ada", "killed before it acted", resenders=[resender]
        )
    assert done.sent is True, done.note
    assert message.id in done.note
    rig.wait_state("lost", "completed acted")
    rig.wait_idle()
    assert rig.result(message) == "charge-lost-1"
    (told,) = received(rig, "lost")
    assert told["headers"]["tenant"] == "acme"
    assert told["expires"] is None, "its time was over, and a person decided that it is to happen"


def test_a_result_that_is_ignored_is_not_stored_for_a_repeat_either(rig: CeleryRig) -> None:
    rig.start()
    message = rig.send("one", how="ignored")
    rig.wait_state("one", "completed acted")
    rig.send_again(message)
    rig.wait_answered("one", "repeat")
    rig.wait_idle()
    assert rig.result_of(message).state == "PENDING"
    assert rig.stage.effects["one"] == 1


@pytest.mark.parametrize(
    ("point", "state", "effects"), [("claimed", "released", 0), ("inside", "held", 0), ("effect", "held", 1)]
)
def test_a_soft_limit_says_whether_it_had_acted(rig: CeleryRig, point: str, state: str, effects: int) -> None:
    rig.start()
    rig.stage.hold("slow", point)
    message = rig.send("slow", how="limited")
    found = rig.wait_result(message, "FAILURE")
    assert "SoftTimeLimitExceeded" in repr(found.result)
    rig.stage.release("slow", point)
    rig.wait_answered("slow", "released" if state == "released" else "uncertain")
    assert rig.stage.effects["slow"] == effects
    if state == "held":
        rig.send_again(message)
    rig.wait_state("slow", state)


def test_a_revoked_task_leaves_its_record_to_the_lease(rig: CeleryRig) -> None:
    rig.start(lease=3)
    rig.stage.hold("revoked", "inside")
    message = rig.send("revoked")
    rig.stage.wait_for("revoked", "inside")
    rig.app.control.revoke(message.id, terminate=True, signal="SIGKILL")
    rig.wait_result(message, "REVOKED")
    rig.stage.release("revoked", "inside")
    rig.wait_idle()
    wait_stale(rig, "revoked")
    assert rig.stage.effects["revoked"] == 0
    rig.send("next")
    rig.wait_state("next", "completed acted")


@pytest.mark.parametrize(
    ("how", "point", "effects"),
    [("once", "claimed", 0), ("duplicate", "effect", 1)],
    ids=["before acting", "after the effect, under autoretry"],
)
def test_a_claim_lost_midway_ends_the_attempt_and_not_the_worker(
    rig: CeleryRig, how: str, point: str, effects: int
) -> None:
    """Taken over while it was paused: that is no failure and no retry. The same child runs the next task, and the message
    comes again and asks the record."""
    rig.start(SEMEL_TEST_NOTES="1")
    rig.stage.hold("paused", point)
    message = rig.send("paused", how=how)
    child = rig.stage.wait_for("paused", point).pid
    rig.age("paused")
    with holding(rig, "paused", effect=semel.AcceptDuplicate()) as holder:
        rig.stage.release("paused", point)
        rig.wait_answered("paused", "claim_lost")
        rig.send("next", how="once")
        rig.wait_state("next", "completed acted")
        assert {each.pid for each in rig.stage.arrived("next")} == {child}
        assert rig.result_of(message).state == "PENDING"
        holder.end()
    rig.wait_answered("paused", "repeat")
    rig.wait_idle()
    assert {told["retries"] for told in received(rig, "paused")} == {0}
    assert rig.result(message) == "by the holder"
    assert rig.stage.effects["paused"] == effects
    assert rig.logged("Traceback") == 0


def test_arguments_that_no_jsonb_takes_are_kept_and_sent_again(rig: CeleryRig) -> None:
    rig.start()
    odd = "nul \x00"
    rig.stage.answer("odd", "effect", "raise")
    message = rig.send_task("charge_once", {"name": "odd", "amount": odd})
    rig.wait_result(message, "FAILURE")
    rig.send_again(message)
    rig.wait_state("odd", "held")
    with rig.session() as session:
        (shown,) = run(list_operations(rig.filter("odd"), limit=2, before_id=None), session).operations
        done = held.redo(session, shown.id, shown.claim, "ada", "not there", resenders=[rig.resender()])
    assert done.sent is True, done.note
    rig.wait_state("odd", "completed acted")
    assert rig.stage.effects["odd"] == 2


@pytest.mark.parametrize(
    ("task", "note", "options"),
    [
        ("charge_converted", "made into an object", {}),
        ("charge_noted", 1j, {"serializer": "pickle"}),
    ],
    ids=["other arguments than the message's", "another serializer than the task's"],
)
def test_in_progress_is_no_failure_whatever_the_message_is_made_of(
    request: pytest.FixtureRequest,
    make_database: Callable[[str], Any],
    tmp_path: Path,
    task: str,
    note: Any,
    options: dict[str, Any],
) -> None:
    conf = {"accept_content": ["json", "application/x-python-serialize"]}
    with redis_rig(request, make_database("postgresql"), tmp_path, setup={"conf": conf}) as rig:
        rig.start()
        with holding(rig, "one") as holder:
            message = rig.send_task(task, {"name": "one", "note": note}, **options)
            rig.wait_answered("one", "in_progress", 2)
            holder.end()
        rig.wait_answered("one", "repeat")
        rig.wait_idle()
        assert rig.result(message) == "by the holder"


def test_a_call_from_another_task_is_answered_where_it_was_made(rig: CeleryRig) -> None:
    """Else the other task would be published again, with the arguments of the call."""
    rig.start()
    with holding(rig, "one"):
        message = rig.send_task("calls_another", {"customer": "one"})
        rig.wait_idle()
        assert rig.result(message) == "in progress"
    assert rig.answered("one", "in_progress") == 1


def test_a_killed_worker_under_early_acknowledgement_is_listed(rig: CeleryRig) -> None:
    rig.start(lease=2)
    rig.stage.hold("lost", "inside")
    rig.send("lost", how="early")
    os.kill(rig.stage.wait_for("lost", "inside").pid, signal.SIGKILL)
    rig.stage.release("lost", "inside")
    wait_stale(rig, "lost")
    rig.wait_idle()
    assert stale(rig) == {"lost"}


def test_the_answer_of_an_operation_inside_is_an_exception_of_the_task(each: CeleryRig) -> None:
    """In progress inside: the outer task fails, as for any exception, and the outer operation is released."""
    each.start()
    with holding(each, "busy-part") as holder:
        message = each.send_task("whole", {"name": "busy"})
        told = each.wait_result(message, "FAILURE")
        assert "InProgress" in repr(told.result)
        each.wait_idle()  # it is not published again: nobody knows whether it ever ends
        assert each.state("busy") == "released"
        holder.end()
    each.send_again(message)
    each.wait_state("busy", "completed acted")
    each.wait_idle()
    assert each.result(message) == "by the holder"
    assert each.stage.effects["busy"] == 1


@pytest.mark.parametrize("answer", ["held", "abandoned"])
def test_a_final_answer_inside_does_not_end_the_task(rig: CeleryRig, answer: str) -> None:
    """Retried as any exception is, until a person has decided about the inner one."""
    rig.start()
    rig.send("final-part")
    rig.wait_state("final-part", "completed acted")
    changes = {
        "held": {"state": "held", "outcome": None, "completed_at": None},
        "abandoned": {"outcome": "abandoned"},
    }
    stored = rig.stored()
    key = compute_key("final-part").digest
    stored.change(key, **changes[answer])
    message = rig.send_task("whole_retried", {"name": "final"})
    rig.wait_answered("final-part", answer, 2)
    assert rig.result_of(message).state in ("RETRY", "PENDING")
    stored.change(key, state="completed", outcome="by_person", completed_at=Ago(0))
    stored.close()
    rig.wait_state("final", "completed acted")
    rig.wait_idle()
    assert rig.result_of(message).state == "SUCCESS"
    assert rig.stage.effects["final"] == 1


@pytest.mark.parametrize("how", ["once", "hold"], ids=["plain", "autoretry"])
def test_what_fails_for_good_is_one_line_of_the_log(rig: CeleryRig, how: str) -> None:
    """And a failure in the result backend, with its traceback there."""
    rig.start()
    first = rig.send("told", how=how)
    rig.wait_result(first, "SUCCESS")
    messages = {"PayloadMismatch": rig.send("told", how=how, amount=200)}
    rig.wait_result(messages["PayloadMismatch"], "FAILURE")
    stored = rig.stored()
    stored.change(compute_key("told").digest, state="held", outcome=None, completed_at=None)
    stored.close()
    messages["Held"] = rig.send("told", how=how)
    for name, message in messages.items():
        told = rig.wait_result(message, "FAILURE")
        assert name in repr(told.result)
        assert "Traceback" in told.traceback
        rig.wait_logged(f"[{message.id}] raised expected: {name}(")
    assert rig.logged("Traceback") == 0


def test_a_guard_whose_database_is_lost_fails_the_task_unless_it_is_retried(rig: CeleryRig) -> None:
    """The message of the one that is not retried is gone; the other one is done when the database is back."""
    rig.start(concurrency=2)
    with closed(rig.database):
        lost, waits = rig.send("lost", how="once"), rig.send("waits", how="waits")
        told = rig.wait_result(lost, "FAILURE")
        assert "DatabaseUnreachable" in repr(told.result)
        rig.wait_result(waits, "RETRY")
        until(lambda: rig.pending() == 1, "of the two only the retry is left")
    rig.wait_result(waits, "SUCCESS")
    rig.wait_idle()
    assert rig.state("lost") == "none"
    assert (rig.stage.effects["lost"], rig.stage.effects["waits"]) == (0, 1)


@contextmanager
def closed(url: str) -> Iterator[None]:
    """A database that lets nobody in while the block runs."""
    name = conninfo_to_dict(url)["dbname"]
    with psycopg.connect(make_conninfo(url, dbname="postgres"), autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        try:
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
