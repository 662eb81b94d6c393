"""Cases of docs/adr/0006-failure-modes-and-cases.md with Celery on a real Redis, its time-outs scaled to seconds.

Each sends an unguarded twin along, where the case is a duplicate: the twin must run twice, or the case was not there.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import chain
from tests.adapters.celery_rig import CeleryRig, redis_rig, with_setup
from tests.adapters.celery_stages import holding, stale, wait_stale
from tests.adapters.rig import UNGUARDED
from tests.guard.conftest import make_database
from tests.support.waiting import until

import semel

__all__ = ["make_database"]

MakeRig = Callable[..., CeleryRig]


@pytest.fixture
def make_rig(
    request: pytest.FixtureRequest, make_database: Callable[[str], Any], tmp_path: Path
) -> Iterator[MakeRig]:
    """Makes a rig on Redis; the options are fields of its set-up."""
    from contextlib import ExitStack

    with ExitStack() as ended:

        def make(**setup: Any) -> CeleryRig:
            return ended.enter_context(redis_rig(request, make_database("postgresql"), tmp_path, setup=setup))

        yield make


def test_c01_a_far_date_comes_several_times_and_acts_once(make_rig: MakeRig) -> None:
    """A visibility time-out of 2 s, a date 7 s ahead: the copies wait in the workers, and start together."""
    rig = make_rig(visibility=2)
    for _ in range(2):
        rig.start(concurrency=2)
    rig.stage.hold("guarded", "inside")
    rig.send("guarded", countdown=7)
    rig.send("twin", how=UNGUARDED, countdown=7)
    rig.stage.wait_for("guarded", "inside")
    rig.wait_answered("guarded", "in_progress")
    rig.stage.release("guarded", "inside")
    rig.stage.wait_for("twin", "effect", 2)
    rig.wait_state("guarded", "completed acted")
    rig.wait_idle()
    assert rig.stage.effects["guarded"] == 1
    assert rig.stage.effects["twin"] >= 2


def test_c03_a_run_longer_than_the_visibility_time_acts_once(make_rig: MakeRig) -> None:
    """A visibility time-out of 5 s, and a task that takes over 10: until its twin has been delivered three times."""
    rig = make_rig(visibility=5)
    for _ in range(2):
        rig.start(lease=40, concurrency=2)
    rig.stage.hold("guarded", "inside")
    rig.stage.hold("twin", "claimed", turns=2)
    message = rig.send("guarded")
    rig.send("twin", how=UNGUARDED)
    rig.stage.wait_for("twin", "claimed", 3)
    rig.wait_answered("guarded", "in_progress", 2)
    assert rig.result_of(message).state == "PENDING", "in progress is no success"
    rig.stage.release("guarded", "inside")
    rig.stage.release("twin", "claimed")
    rig.wait_state("guarded", "completed acted")
    rig.wait_idle()
    assert rig.stage.effects["guarded"] == 1
    assert rig.stage.effects["twin"] >= 3
    assert rig.result(message) == "charge-guarded-1"


def test_c03_a_lease_shorter_than_the_run_leads_to_the_policy(make_rig: MakeRig) -> None:
    """Declared so it is refused; where the run is longer than was declared, a person is asked and nothing acts twice."""
    rig = make_rig(visibility=5)
    once = semel.Once(rig.database)
    with pytest.raises(semel.errors.ConfigurationError, match="shorter than its longest run"):
        once.operation("charge", key="name", lease=8, longest_run=12)
    once.close()
    for _ in range(2):
        rig.start(lease=2)
    rig.stage.hold("guarded", "inside")
    rig.send("guarded")
    rig.stage.wait_for("guarded", "inside")
    rig.wait_answered("guarded", "held")
    rig.stage.release("guarded", "inside")
    assert rig.wait_state("guarded", "completed acted") == "completed acted"
    assert rig.stage.effects["guarded"] == 1


def test_c04_another_application_has_a_shorter_time_out(make_rig: MakeRig) -> None:
    """One waits for an hour, the other on the same Redis for two seconds: it gives back everybody's messages."""
    rig = make_rig(visibility=3600)
    for _ in range(2):
        rig.start(concurrency=2, lease=20)  # its copies wait for the rest of it
    rig.start(queues="other", setup=with_setup(rig, visibility=2, queue="other"))
    rig.stage.hold("guarded", "inside")
    rig.stage.hold("twin", "claimed")
    rig.send("guarded")
    rig.send("twin", how=UNGUARDED)
    rig.stage.wait_for("twin", "claimed", 2)
    rig.wait_answered("guarded", "in_progress")
    rig.stage.release("guarded", "inside")
    rig.stage.release("twin", "claimed")
    rig.wait_state("guarded", "completed acted")
    rig.wait_idle()
    assert rig.stage.effects["guarded"] == 1
    assert rig.stage.effects["twin"] >= 2


def test_c06_a_killed_child_is_lost_by_celery_and_listed_by_the_record(make_rig: MakeRig) -> None:
    """acks_late without reject_on_worker_lost: Celery acknowledges what a killed child had. The worker goes on."""
    rig = make_rig()
    rig.start(lease=2, concurrency=2)
    for name, how in (("guarded", "late_plain"), ("twin", "unguarded_late_plain")):
        rig.stage.hold(name, "claimed")
        task = how if name == "twin" else f"charge_{how}"
        message = rig.send_task(task, {"name": name})
        os.kill(rig.stage.wait_for(name, "claimed").pid, signal.SIGKILL)
        rig.wait_result(message, "FAILURE")
        rig.stage.release(name, "claimed")
    rig.wait_idle()
    wait_stale(rig, "guarded")
    rig.send("next")
    rig.wait_state("next", "completed acted")
    assert rig.stage.effects["guarded"] == rig.stage.effects["twin"] == 0, "lost, both"
    assert "guarded" in stale(rig)


def test_c06_a_task_that_kills_its_workers_ends_held(make_rig: MakeRig) -> None:
    """reject_on_worker_lost delivers it again for ever; the record counts, and stops it. The worker goes on."""
    rig = make_rig()
    rig.start(lease=1)
    rig.stage.hold("killer", "claimed", turns=None)
    rig.send("killer")
    kills = 0
    while rig.state("killer") != "held":
        if len(rig.stage.arrived("killer", "claimed")) > kills:
            os.kill(rig.stage.arrived("killer", "claimed")[kills].pid, signal.SIGKILL)
            kills += 1
        until(
            lambda seen=kills: (
                len(rig.stage.arrived("killer", "claimed")) > seen or rig.state("killer") == "held"
            ),
            "it comes again, or is held",
        )
    rig.stage.release("killer", "claimed")
    assert kills == 6, "the first attempt, and five takeovers"
    rig.send("next")
    rig.wait_state("next", "completed acted")
    assert rig.stage.effects["killer"] == 0


def test_c07_two_schedulers_send_one_slot_under_two_ids(make_rig: MakeRig) -> None:
    """Two of `celery beat`, until three slots were sent by both: the slot in the key, as the scheduler says it."""
    rig = make_rig()
    rig.start(concurrency=2)
    for beat in [rig.start_beat(), rig.start_beat()]:
        assert beat.process.poll() is None

    def sent_twice() -> list[str]:
        charged = dict(rig.stage.effects)
        return [name.partition("-")[2] for name, times in charged.items() if "twin-" in name and times >= 2]

    rig.stage.wait_until(lambda: len(sent_twice()) >= 3, "three slots were sent by both")
    rig.wait_logged(": repeat: completed (acted)", 3)
    for beat in rig.workers[1:]:
        beat.stop()
    rig.wait_idle()
    slots = sent_twice()
    assert [rig.stage.effects[f"report-{slot}"] for slot in slots] == [1] * len(slots)


def test_c08_a_claim_left_by_a_kill_blocks_for_one_lease(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.start(lease=10)  # the pool looks after its children every 5 s
    rig.stage.hold("guarded", "claimed")
    message = rig.send("guarded", how="late_plain")
    os.kill(rig.stage.wait_for("guarded", "claimed").pid, signal.SIGKILL)
    rig.wait_result(message, "FAILURE")
    rig.stage.release("guarded", "claimed")
    rig.send_again(message)
    rig.wait_answered("guarded", "in_progress")
    assert rig.result_of(message).state == "FAILURE", "no success is reported for it"
    assert rig.state("guarded") == "claimed"
    rig.wait_state("guarded", "completed acted")
    rig.wait_idle()
    assert rig.stage.effects["guarded"] == 1
    assert rig.result(message) == "charge-guarded-1"


def test_c09_a_tick_killed_by_its_hard_limit_stops_no_other(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.start(lease=3)
    rig.stage.hold("tick-1", "inside")
    first = rig.send("tick-1", how="hard")
    rig.wait_result(first, "FAILURE")
    assert "TimeLimitExceeded" in repr(rig.result_of(first).result)
    for number in range(2, 6):
        rig.send(f"tick-{number}", how="hard")
    for number in range(2, 6):
        rig.wait_state(f"tick-{number}", "completed acted")
    wait_stale(rig, "tick-1")
    rig.send_again(first)
    rig.wait_answered("tick-1", "held")
    rig.stage.release("tick-1", "inside")
    assert "after the point of no return" in "".join(rig._log(worker) for worker in rig.workers), (
        "the skip has its reason in the log"
    )


def test_c10_in_progress_is_no_success_and_moves_no_chain_on(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.start()
    with holding(rig, "guarded") as holder:
        head = rig.app.signature("charge_hold", kwargs={"name": "guarded"}, queue="charges")
        after = rig.app.signature("step", kwargs={"name": "after"}, queue="charges")
        last = chain(head, after, app=rig.app).apply_async()
        rig.wait_answered("guarded", "in_progress")
        assert last.parent.state == "PENDING"
        assert rig.stage.effects["after"] == 0
        holder.end()
        assert last.get(timeout=60) == "by the holder"
    rig.wait_idle()
    assert rig.stage.effects["after"] == 1
    assert rig.stage.effects["guarded"] == 0, "the holder had done it"


def test_c11_celerys_own_memory_of_successes_does_not_help_and_the_record_does(make_rig: MakeRig) -> None:
    """Killed after the effect and before the result was stored; then the same id comes without a redelivered mark."""
    rig = make_rig(conf={"worker_deduplicate_successful_tasks": True})
    rig.start(lease=2)
    for name, task in (("guarded", "charge_late_plain"), ("twin", "unguarded_late_plain")):
        rig.stage.hold(name, "effect")
        message = rig.send_task(task, {"name": name})
        os.kill(rig.stage.wait_for(name, "effect").pid, signal.SIGKILL)
        rig.wait_result(message, "FAILURE")
        rig.stage.release(name, "effect")
        rig.send_again(message)
    rig.stage.wait_for("twin", "effect", 2)
    rig.wait_state("guarded", "held")
    rig.wait_idle()
    assert rig.stage.effects["twin"] == 2
    assert rig.stage.effects["guarded"] == 1


def test_c12_messages_that_age_in_a_workers_memory_act_once(make_rig: MakeRig) -> None:
    """A worker took ten and is busy with the first for longer than the visibility time-out: another one gets the rest."""
    rig = make_rig(visibility=2, prefetch=20)
    rig.start()
    rig.stage.hold("first", "claimed")
    rig.send("first")
    rig.stage.wait_for("first", "claimed")
    guarded = [f"guarded-{number}" for number in range(5)]
    twins = [f"twin-{number}" for number in range(5)]
    for name in guarded:
        rig.send(name)
    for name in twins:
        rig.send(name, how=UNGUARDED)
    rig.start()
    for name in twins:
        rig.stage.wait_for(name, "effect")
    for name in guarded:
        rig.wait_state(name, "completed acted")
    rig.stage.release("first", "claimed")
    rig.wait_state("first", "completed acted")
    for name in twins:
        rig.stage.wait_for(name, "effect", 2)
    rig.wait_idle()
    assert all(rig.stage.effects[name] >= 2 for name in twins)
    assert [rig.stage.effects[name] for name in (*guarded, "first")] == [1] * 6
