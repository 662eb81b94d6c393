"""Celery under replay, on real brokers and with real workers: what is sent, seen, killed, and taken out again."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Queue
from tests.adapters.brokers import shared_rabbit, shared_redis
from tests.replay.support import Stage, staged
from tests.support.keeping import run_directory
from tests.support.waiting import until

from semel.errors import WorkerDidNotStart
from semel.replay.description import CeleryTask
from semel.replay.events import Point
from semel.replay.processes import Victim, Worker
from semel.replay.ways.celery import CeleryWay, option_of
from semel.replay.ways.way import Sent

on_redis = pytest.mark.parametrize("shop", ["redis"], indirect=True)


@dataclass
class Shop:
    """One task of the shop under replay."""

    stage: Stage
    way: CeleryWay
    broker: str
    queue: str

    @property
    def hold(self) -> Path:
        """While it is there, tasks do not end."""
        return Path(f"{self.stage.effects_file}.hold")

    def start(self, **options: Any) -> Worker:
        return self.way.start(self.stage.surroundings, **options)

    def send(self, number: int) -> Sent:
        with self.stage.room.sending():
            return self.known(number, self.way.send({"order": f"order-{number}"}, number))

    def known(self, number: int, sent: Sent) -> Sent:
        """Else what its worker reports waits to be told whose it is."""
        self.stage.room.know(sent.delivery, number)
        return sent

    def orders(self) -> list[str]:
        return [line.split()[0] for line in self.stage.effects()]

    def foreign_messages(self) -> list[str]:
        """Without the workers: those of other tests are at the same RabbitMQ."""
        return [each for each in self.way.foreign() if not each.startswith("another worker: ")]

    def wait(self, count: int) -> None:
        until(lambda: len(self.stage.effects()) >= count, f"{count} effects")

    def wait_done(self) -> None:
        until(lambda: self.way.pending() == 0, "nothing is pending")


@pytest.fixture(params=["redis", "rabbitmq"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Makes shops on one broker, over one queue of their own."""
    redis = shared_redis(*run_directory(request))
    queue = f"charges-{secrets.token_hex(6)}"
    backend = redis.new_url()
    broker = redis.new_url() if request.param == "redis" else shared_rabbit(*run_directory(request)).url
    with ExitStack() as ended:

        def make(task: str = "charge", **options: Any) -> Shop:
            environment = options.pop("environment", {})
            watch = ["celery_shop.act"]
            stage = ended.enter_context(
                staged(tmp_path, watch=watch, BROKER=broker, BACKEND=backend, QUEUE=queue, **environment)
            )
            deliver = CeleryTask(app="celery_shop", task=f"celery_shop.{task}", **options)
            way = CeleryWay(deliver, stage.plain)
            ended.callback(way.close)
            made = Shop(stage, way, broker, queue)
            ended.callback(made.hold.unlink, missing_ok=True)
            return made

        yield make
    if request.param == "rabbitmq":
        with Connection(broker) as connection:
            for name in (queue, f"{queue}-routed"):
                Queue(name, channel=connection.default_channel).delete()


def test_a_message_is_sent_run_and_sent_again_under_its_id(shop: Callable[..., Shop]) -> None:
    made = shop()
    assert made.foreign_messages() == []
    assert made.way.eager() is None
    worker = made.start()
    sent = made.send(1)
    made.wait(1)
    assert made.way.send_again(sent) == sent
    made.wait(2)
    made.wait_done()
    lines = [line.split() for line in made.stage.effects()]
    assert [(order, delivery) for order, _, delivery in lines] == [("order-1", sent.delivery)] * 2
    assert {int(pid) for _, pid, _ in lines}.isdisjoint({worker.pid, os.getpid()}), "a child of the worker's"
    assert made.way.victims == ("child", "parent", "group")
    sweep = 3 if made.broker.startswith("redis") else 0
    assert made.way.redelivers_within("child") == 10
    assert made.way.redelivers_within("group") == 10 + sweep


@pytest.mark.parametrize("task", ["charge", "early"])
def test_it_is_pending_from_the_queue_to_its_end(shop: Callable[..., Shop], task: str) -> None:
    made = shop(task)
    made.hold.touch()
    made.send(1)
    assert made.way.pending() == 1
    made.start()
    made.wait(1)
    assert made.way.pending() == 1
    made.send(2)
    until(lambda: made.way.pending() == 2, "the second waits, here or there")
    made.hold.unlink()
    made.wait_done()
    assert made.orders() == ["order-1", "order-2"]


@pytest.mark.parametrize("victim", ["child", "parent", "group"])
def test_what_a_killed_worker_had_comes_again(shop: Callable[..., Shop], victim: Victim) -> None:
    made = shop()
    made.hold.touch()
    worker = made.start()
    made.send(1)
    made.wait(1)
    pid = int(made.stage.effects()[0].split()[1])
    code = worker.kill(victim, pid)
    assert code == (None if victim == "child" else -9)
    made.hold.unlink()
    if victim != "child":
        worker.end()
        assert made.way.pending() == 1
        made.start()
    made.wait(2)
    made.wait_done()
    assert made.orders() == ["order-1"] * 2


@on_redis
def test_a_worker_reports_and_dies_where_it_is_told_to(shop: Callable[..., Shop]) -> None:
    made = shop()
    room = made.stage.room
    worker = made.start()
    room.hold(1, Point.RETURN)
    made.send(1)
    came = made.stage.first(1, Point.RETURN)
    assert made.stage.points(1) == ["begin", "entry", "return"]
    assert worker.kill("child", came.pid) is None
    room.release(1, Point.RETURN)
    room.wait_for(1, Point.END, 1, made.way.redelivers_within("child"))
    assert made.stage.points(1) == ["begin", "entry", "return"] * 2 + ["end"]
    made.wait_done()


@on_redis
def test_it_goes_where_its_routes_say(shop: Callable[..., Shop]) -> None:
    made = shop("routed")
    assert made.way.redelivers_within("group") == 0, "it is acknowledged when it begins"
    made.start()
    made.send(1)
    made.wait(1)
    assert f"{made.queue}-routed" in " ".join(made.way._workers.popitem()[1].process.args)  # type: ignore[arg-type]


@on_redis
def test_arguments_go_by_position_where_the_description_says_so(shop: Callable[..., Shop]) -> None:
    made = shop("placed", positional=True)
    made.start()
    sent = made.send(1)
    made.wait(1)
    made.way.send_again(sent)
    made.wait(2)
    assert made.orders() == ["order-1"] * 2


@on_redis
def test_a_description_names_another_queue(shop: Callable[..., Shop]) -> None:
    made = shop("charge", queue=None)
    other = shop("routed", queue=made.queue)
    made.start()
    other.send(1)
    made.wait(1)


@on_redis
def test_a_message_comes_again_past_the_senders_own_lock(shop: Callable[..., Shop]) -> None:
    made = shop("once")
    made.start()
    sent = made.send(1)
    made.wait(1)
    made.way.send_again(sent)
    made.wait(2)
    kept_back = made.send(2)
    assert "published nothing" in kept_back.extra["deduplicated"]
    assert made.way.send_again(kept_back) == kept_back
    until(lambda: made.way.pending() == 0, "the second delivery has ended, and nothing is left")


def test_others_are_seen_and_left_alone(shop: Callable[..., Shop]) -> None:
    first = shop()
    first.send(1)
    made = shop()
    assert made.foreign_messages() == [f"1 messages in the queue {made.queue}"]
    made.send(2)
    made.way.clear()
    assert made.way.pending() == 1
    worker = first.start()
    first.wait(1)
    assert first.orders() == ["order-1"]
    first.wait_done()
    assert first.foreign_messages() == []
    (node,) = first.way._alive()
    assert f"another worker: {node}" in made.way.foreign()
    worker.end()


def test_what_was_sent_is_taken_out(shop: Callable[..., Shop]) -> None:
    made = shop()
    made.hold.touch()
    worker = made.start()
    for number in range(3):
        made.send(number)
    made.wait(1)
    worker.end()
    until(lambda: made.way.pending() == 3, "what it had is the broker's again")
    made.way.clear()
    assert made.way.pending() == 0


@on_redis
def test_results_are_taken_out(shop: Callable[..., Shop]) -> None:
    import redis

    made = shop()
    made.start()
    made.send(1)
    made.wait(1)
    made.wait_done()
    with redis.Redis.from_url(made.stage.surroundings.environment["BACKEND"]) as client:
        until(lambda: client.keys("celery-task-meta-*"), "the result is stored")
        made.way.clear()
        assert client.keys("celery-task-meta-*") == []


@on_redis
def test_eager_tasks_are_noticed(shop: Callable[..., Shop]) -> None:
    made = shop(environment={"EAGER": "1"})
    assert "task_always_eager" in str(made.way.eager())
    sent = made.send(1)
    assert "task_always_eager" in made.way.send_again(sent).extra["deduplicated"]
    assert made.stage.effects() == []


def test_targets_have_no_password(shop: Callable[..., Shop]) -> None:
    made = shop()
    targets = made.way.targets()
    assert set(targets) == {"broker", "results"}
    assert made.broker.rpartition("@")[2].partition("/")[0].removeprefix("redis:") in targets["broker"]
    assert "guest" not in targets["broker"]


@on_redis
def test_a_thread_pool_has_no_child(shop: Callable[..., Shop]) -> None:
    made = shop(options=["--pool", "threads"])
    assert made.way.victims == ("parent", "group")
    worker = made.start()
    made.send(1)
    made.wait(1)
    assert int(made.stage.effects()[0].split()[1]) == worker.pid
    made.wait_done()


def test_an_application_that_does_not_load_says_why(tmp_path: Path) -> None:
    with staged(tmp_path) as stage, pytest.raises(WorkerDidNotStart, match="KeyError: 'BROKER'"):
        CeleryWay(CeleryTask(app="celery_shop", task="x"), stage.plain)


@pytest.mark.parametrize(
    "options", [["-P", "solo"], ["-Psolo"], ["--pool=solo"], ["--pool", "solo"], ["-c", "1", "-P", "solo"]]
)
def test_an_option_is_found_however_it_is_written(options: list[str]) -> None:
    assert option_of(options, "-P", "--pool") == "solo"
    assert option_of(options, "-Q", "--queues") is None
