"""Public cases about Sidekiq and other queues of Ruby's, by their numbers, and what Sidekiq does besides."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.adapters import job
from tests.adapters.brokers import Redis
from tests.adapters.celery_rig import redis_rig
from tests.adapters.contract import SHORT, new_name
from tests.adapters.sidekiq_fixtures import make_rig, redis_server
from tests.adapters.sidekiq_rig import SidekiqRig
from tests.guard.conftest import make_database
from tests.guard.stored import Ago
from tests.support.waiting import until

import semel
from semel.adapters.sidekiq import SidekiqResender
from semel.errors import ConfigurationError, InProgress, NotFound, PayloadMismatch
from semel.store.guard_upkeep import purge_completed, purge_released
from semel.store.guard_views import list_operations
from semel.store.run import run

__all__ = ["make_database", "redis_server"]

MONTH = 30 * 86_400.0


@pytest.fixture
def rig(make_database: Callable[[str], Any], redis_server: Redis, tmp_path: Path) -> Iterator[SidekiqRig]:
    with make_rig(make_database, redis_server, tmp_path) as made:
        yield made


@pytest.fixture
def once(rig: SidekiqRig, monkeypatch: pytest.MonkeyPatch) -> Iterator[semel.Once]:
    """A guard of Python's on the same records."""
    monkeypatch.setenv(job.PORT, str(rig.stage.port))
    made = semel.Once(rig.database)
    yield made
    made.close()


def test_c23_a_killed_job_blocks_for_one_lease_and_then_acts(rig: SidekiqRig) -> None:
    name = new_name("c23")
    workers = {worker.pid: worker for worker in (rig.start(), rig.start())}
    rig.stage.hold(name, "claimed")
    message = rig.send(name)
    reached = rig.stage.wait_for(name, "claimed")
    workers[reached.pid].kill("parent", reached.pid)
    rig.send_again(message)
    rig.wait_answered(name, "in_progress")
    until(lambda: rig.redis.zcard("schedule") == 1, "it was pushed again, for when the lease is over")
    rig.age(name)
    rig.send_again(message)
    assert rig.wait_state(name, "completed acted") == "completed acted"
    assert rig.stage.effects[name] == 1


def test_c24_a_purge_leaves_what_a_job_has_claimed(rig: SidekiqRig) -> None:
    name = new_name("c24")
    rig.start()
    rig.stage.hold(name, "inside")
    rig.send(name)
    rig.stage.wait_for(name, "inside")
    for _ in ("young", "old"):
        with rig.session() as session:
            for purge in (purge_completed, purge_released):
                run(purge(keep=timedelta(0)), session)
        record = rig.record(name)
        assert record is not None
        assert (record["state"], record["claim"]) == ("claimed", 1)
        rig.age(name)
    rig.stage.release(name, "inside")
    assert rig.wait_state(name, "completed acted") == "completed acted"


def test_c25_nothing_depends_on_how_long_a_job_waited(rig: SidekiqRig) -> None:
    name = new_name("c25")
    message = rig.send(name, created_at=time.time() - MONTH)
    rig.send_again(message)
    rig.start(lease=0.5)
    rig.wait_answered(name, "repeat")
    rig.wait_idle()
    assert rig.stage.effects[name] == 1


def test_c26_a_float_makes_no_key(rig: SidekiqRig) -> None:
    name = new_name("c26")
    rig.start()
    rig.send(name, how="FloatJob", amount=10)
    rig.stage.wait_for(name, "effect")
    rig.send(name, how="FloatJob", amount=10.0)  # type: ignore[arg-type]
    until(rig.dead, "the job is dead")
    (dead,) = rig.dead()
    assert (dead["error_class"], dead["args"]) == ("Semel::KeyRefused", [name, 10.0])
    assert rig.stage.effects[name] == 1


def test_c27_a_job_older_than_its_record_is_not_acted_on(rig: SidekiqRig) -> None:
    name = new_name("c27")
    rig.start()
    message = rig.send(name, how="DatedJob", amount=100)
    until(rig.dead, "the job is dead")
    assert rig.dead()[0]["error_class"] == "Semel::TooOld"
    assert rig.dead()[0]["jid"] == message["jid"]
    assert (rig.state(name), rig.stage.effects[name]) == ("none", 0)
    rig.send(name, how="DatedJob", amount=10)
    rig.wait_state(name, "completed acted")


def test_c28_one_that_was_thought_dead_hears_of_it_before_it_calls_outside(rig: SidekiqRig) -> None:
    name = new_name("c28")
    rig.start()
    rig.start()
    rig.stage.hold(name, "claimed")
    message = rig.send(name)
    rig.stage.wait_for(name, "claimed")
    rig.age(name)
    rig.send_again(message)
    rig.wait_state(name, "completed acted")
    rig.stage.release(name, "claimed")
    rig.wait_answered(name, "claim_lost")
    rig.wait_answered(name, "repeat")
    rig.wait_idle()
    assert rig.stage.effects[name] == 1


def test_c28_a_stopped_worker_loses_its_claim_though_its_lease_is_extended(rig: SidekiqRig) -> None:
    """Extension is a thread of the worker's: what stops the worker stops it too."""
    name = new_name("c28")
    worker = rig.start(lease=SHORT)
    rig.stage.hold(name, "claimed")
    message = rig.send(name, how="ExtendedJob")
    rig.stage.wait_for(name, "claimed")
    first = rig.record(name)
    assert first is not None
    until(lambda: (rig.record(name) or {})["revision"] >= first["revision"] + 2, "the lease is extended")
    worker.process.send_signal(signal.SIGSTOP)
    rig.age(name)
    rig.start(lease=SHORT)
    rig.send_again(message)
    rig.wait_state(name, "completed acted")
    rig.stage.release(name, "claimed")
    worker.process.send_signal(signal.SIGCONT)
    rig.wait_answered(name, "claim_lost")
    rig.wait_idle()
    assert rig.stage.effects[name] == 1


def test_c29_a_late_finisher_leaves_the_newer_claim_alone(rig: SidekiqRig) -> None:
    name = new_name("c29")
    for _ in range(3):
        rig.start(lease=60)
    rig.stage.hold(name, "inside")
    message = rig.send(name, how="duplicate")
    rig.stage.wait_for(name, "inside")
    rig.age(name)
    rig.stage.hold(name, "effect")
    rig.send_again(message)
    rig.stage.wait_for(name, "effect")
    rig.stage.release(name, "inside")
    rig.wait_answered(name, "claim_lost")
    record = rig.record(name)
    assert record is not None
    assert (record["state"], record["claim"]) == ("claimed", 2)
    rig.wait_answered(name, "in_progress")
    rig.stage.release(name, "effect")
    rig.wait_state(name, "completed acted")
    assert rig.stage.effects[name] == 2
    stored = rig.stored()
    events = [each[0] for each in stored.events(rig.filter(name).key or "")]
    stored.close()
    assert events == ["takeover", "evidence"]


def test_c30_a_killed_job_that_nobody_delivers_again_is_listed_and_can_be_redone(rig: SidekiqRig) -> None:
    """As a person does it, on the command line."""
    name = new_name("c30")
    worker = rig.start(lease=60)
    rig.stage.hold(name, "claimed")
    message = rig.send(name)
    worker.kill("parent", rig.stage.wait_for(name, "claimed").pid)
    rig.age(name)
    with rig.session() as session:
        (stale,) = run(list_operations(rig.filter(name), limit=2, before_id=None), session).operations
    assert stale.state == "claimed"
    command = [sys.executable, "-m", "semel", "held", "redo", str(stale.id), "--claim", str(stale.claim)]
    command += ["--revision", str(stale.revision), "--reason", "its worker was killed", "--who", "ada"]
    command += ["--sidekiq", rig.redis_url, "--database", rig.database]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"Job {message['jid']} is in the queue default of Sidekiq again." in " ".join(told.stdout.split())
    pushed = json.loads(str(rig.redis.lindex("queue:default", 0)))
    assert {each: pushed[each] for each in ("jid", "class", "args", "queue", "retry")} == {
        each: message[each] for each in ("jid", "class", "args", "queue", "retry")
    }
    rig.start()
    rig.wait_state(name, "completed acted")
    assert rig.stage.effects[name] == 1


@pytest.mark.parametrize(("point", "word"), [("claimed", "released"), ("effect", "uncertain")])
def test_a_hard_shutdown_says_what_it_left(rig: SidekiqRig, point: str, word: str) -> None:
    """Sidekiq raises Shutdown in the job's thread when its time-out is over, after it pushed the job back."""
    name = new_name("shutdown")
    worker = rig.start(timeout=1)
    rig.stage.hold(name, point)
    rig.send(name)
    rig.stage.wait_for(name, point)
    worker.process.terminate()
    rig.wait_answered(name, f"{word}: Sidekiq::Shutdown")
    worker.process.wait(30)
    rig.start()
    rig.wait_state(name, "completed acted" if word == "released" else "held")
    rig.wait_idle()
    assert rig.stage.effects[name] == 1


def test_retries_run_out_and_the_dead_job_can_be_tried_again(rig: SidekiqRig) -> None:
    name = new_name("dies")
    rig.start()
    rig.stage.answer(name, "claimed", "raise", turns=2)
    rig.send(name, retry=1)
    until(rig.dead, "the job is dead")
    assert (rig.state(name), rig.stage.effects[name]) == ("released", 0)
    rig.run("require 'sidekiq/api'; Sidekiq::DeadSet.new.each(&:retry)")
    rig.wait_state(name, "completed acted")
    assert rig.stage.effects[name] == 1
    assert rig.dead() == []


def test_jobs_that_ruby_itself_pushes(rig: SidekiqRig) -> None:
    """One by one, later, and in bulk, where each has a jid of its own: the key makes them one."""
    name = new_name("pushed")
    rig.run(
        f"""
        ChargeHoldJob.perform_async("{name}", 100)
        ChargeHoldJob.perform_in(0.2, "{name}", 100)
        ChargeHoldJob.perform_bulk([["{name}", 100], ["{name}-b", 100], ["{name}", 100]])
        """
    )
    rig.start(concurrency=2, lease=SHORT)
    rig.wait_state(name, "completed acted")
    rig.wait_state(f"{name}-b", "completed acted")
    rig.wait_answered(name, "repeat", 3)
    rig.wait_idle()
    assert (rig.stage.effects[name], rig.stage.effects[f"{name}-b"]) == (1, 1)


@pytest.mark.parametrize("answer", ["held", "abandoned"])
def test_a_final_answer_inside_does_not_end_the_job(rig: SidekiqRig, answer: str) -> None:
    """Sidekiq retries it, as it does any error, until a person has decided about the inner one."""
    name = new_name("whole")
    part = f"{name}-part"
    rig.start()
    rig.send(part)
    rig.wait_state(part, "completed acted")
    changes: dict[str, dict[str, Any]] = {
        "held": {"state": "held", "outcome": None, "completed_at": None},
        "abandoned": {"outcome": "abandoned"},
    }
    stored = rig.stored()
    key = rig.filter(part).key or ""
    stored.change(key, **changes[answer])
    rig.send(name, how="WholeJob")
    rig.wait_answered(part, answer, 2)
    assert rig.stage.effects[name] == 0
    stored.change(key, state="completed", outcome="by_person", completed_at=Ago(0))
    stored.close()
    rig.wait_state(name, "completed acted")
    rig.wait_idle()
    assert rig.stage.effects[name] == 1


def test_a_celery_task_and_a_sidekiq_job_are_one_operation(
    rig: SidekiqRig, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Each by its own worker, over its own broker, with one database."""
    (tmp_path / "celery").mkdir()
    by_ruby, by_python = new_name("shared"), new_name("shared")
    with redis_rig(request, rig.database, tmp_path / "celery") as celery:
        rig.start()
        celery.start()
        rig.send(by_ruby)
        rig.wait_state(by_ruby, "completed acted")
        message = celery.send(by_ruby)
        celery.wait_result(message, "SUCCESS")
        assert celery.result(message) == f"charge-{by_ruby}-1", "what the Ruby job stored"
        celery.send(by_python)
        celery.wait_state(by_python, "completed acted")
        rig.send(by_python)
        rig.wait_answered(by_python, "repeat")
        rig.send(by_python, amount=999)
        rig.wait_answered(by_python, "mismatch")
        assert (rig.stage.effects[by_ruby], celery.stage.effects[by_ruby]) == (1, 0)
        assert (rig.stage.effects[by_python], celery.stage.effects[by_python]) == (0, 1)


class TestOneRecordForTwoLanguages:
    """The same job type, key and payload in Python and in Ruby are one operation."""

    @staticmethod
    def charge(once: semel.Once) -> Any:
        return job.declare(once, "hold").guard(job.charge)

    def test_what_ruby_did_python_repeats(self, rig: SidekiqRig, once: semel.Once) -> None:
        name = new_name("shared")
        rig.start()
        rig.send(name)
        rig.wait_state(name, "completed acted")
        assert self.charge(once)(name, 100) == f"charge-{name}-1"
        with pytest.raises(PayloadMismatch):
            self.charge(once)(name, 999)
        assert rig.stage.effects[name] == 1

    def test_what_python_did_ruby_repeats(self, rig: SidekiqRig, once: semel.Once) -> None:
        name = new_name("shared")
        assert self.charge(once)(name, 100) == f"charge-{name}-1"
        rig.start()
        rig.send(name)
        rig.send(name, amount=999)
        rig.wait_answered(name, "repeat")
        rig.wait_answered(name, "mismatch")
        rig.wait_idle()
        assert rig.stage.effects[name] == 1

    def test_each_waits_for_the_other(self, rig: SidekiqRig, once: semel.Once) -> None:
        name = new_name("shared")
        rig.start(lease=SHORT)
        rig.stage.hold(name, "inside")
        rig.send(name)
        rig.stage.wait_for(name, "inside")
        with pytest.raises(InProgress):
            self.charge(once)(name, 100)
        rig.stage.release(name, "inside")
        rig.wait_state(name, "completed acted")
        assert self.charge(once)(name, 100) == f"charge-{name}-1"
        assert rig.stage.effects[name] == 1

    def test_what_ruby_left_python_decides_on(self, rig: SidekiqRig, once: semel.Once) -> None:
        name = new_name("shared")
        worker = rig.start()
        rig.stage.hold(name, "effect")
        rig.send(name)
        worker.kill("parent", rig.stage.wait_for(name, "effect").pid)
        rig.age(name)
        with pytest.raises(semel.Held):
            self.charge(once)(name, 100)
        assert (rig.state(name), rig.stage.effects[name]) == ("held", 1)


class TestSendingAgain:
    MESSAGE: ClassVar[dict[str, Any]] = {
        "adapter": "sidekiq",
        "class": "X",
        "jid": "a1",
        "args": [1, "é"],
        "queue": "low",
        "retry": 5,
    }

    def test_it_is_pushed_as_sidekiq_pushes(self, rig: SidekiqRig) -> None:
        said = SidekiqResender(rig.redis).send(self.MESSAGE, who="ada", why="it did not happen")
        assert said == "Job a1 is in the queue low of Sidekiq again."
        assert rig.redis.smembers("queues") == {"low"}
        (pushed,) = (json.loads(each) for each in rig.redis.lrange("queue:low", 0, -1))
        assert abs(pushed.pop("enqueued_at") - time.time()) < 60
        assert pushed == {name: value for name, value in self.MESSAGE.items() if name != "adapter"}

    def test_into_a_namespace(self, rig: SidekiqRig) -> None:
        SidekiqResender(rig.redis_url, namespace="shop").send(self.MESSAGE, who="ada", why="")
        assert rig.redis.smembers("shop:queues") == {"low"}
        assert rig.redis.llen("shop:queue:low") == 1

    def test_what_leads_to_no_redis_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="leads to no Redis"):
            SidekiqResender("localhost:6379")

    def test_what_is_no_job_is_refused(self, rig: SidekiqRig) -> None:
        with pytest.raises(NotFound, match="'jid'"):
            SidekiqResender(rig.redis).send({"class": "X", "args": []}, who="ada", why="")
