"""SQS under replay, on a real server and with a real consumer: what is sent, seen, killed, and taken out again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.sqs_rig import server_of
from tests.adapters.sqs_servers import SqsServer
from tests.replay.support import Stage, staged
from tests.support.waiting import until

from semel.replay.description import SqsQueue
from semel.replay.events import Point
from semel.replay.processes import Victim, Worker
from semel.replay.ways.polling import has_polled
from semel.replay.ways.sqs import SqsWay
from semel.replay.ways.way import Sent

VISIBILITY = 2
COMMAND = [sys.executable, "-u", "sqs_shop.py"]


@dataclass
class Shop:
    """One queue of the shop under replay."""

    stage: Stage
    way: SqsWay
    url: str

    @property
    def hold(self) -> Path:
        return Path(f"{self.stage.effects_file}.hold")

    def start(self) -> Worker:
        return self.way.start(self.stage.surroundings)

    def send(self, number: int) -> Sent:
        with self.stage.room.sending():
            return self.known(number, self.way.send({"order": f"order-{number}"}, number))

    def known(self, number: int, sent: Sent) -> Sent:
        """Else what its worker reports waits to be told whose it is."""
        self.stage.room.know(sent.delivery, number)
        return sent

    def wait(self, count: int) -> None:
        until(lambda: len(self.stage.effects()) >= count, f"{count} effects")

    def orders(self) -> list[str]:
        return [line.split()[0] for line in self.stage.effects()]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> SqsServer:
    return server_of("ministack", request)


@pytest.fixture
def shop(server: SqsServer, tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    with ExitStack() as ended:

        def make(*, fifo: bool = False, url: str = "", queue: dict[str, Any] | None = None) -> Shop:
            found = url or server.create_queue(fifo=fifo, VisibilityTimeout=VISIBILITY, **(queue or {}))
            stage = ended.enter_context(
                staged(tmp_path, QUEUE=found, **{**server.environment, "AWS_ENDPOINT_URL_SQS": ""})
            )
            deliver = SqsQueue(
                queue_url=found,
                worker=COMMAND,
                endpoint_url=server.url,
                region="us-east-1",
                group="shop-{n}",
                attributes={"kind": "charge-{n}"},
            )
            way = SqsWay(deliver, stage.plain)
            ended.callback(way.close)
            made = Shop(stage, way, found)
            ended.callback(made.hold.unlink, missing_ok=True)
            return made

        yield make


def test_a_message_is_sent_consumed_and_sent_again(shop: Callable[..., Shop]) -> None:
    made = shop()
    assert made.way.foreign() == []
    worker = made.start()
    sent = made.send(1)
    again = made.known(1, made.way.send_again(sent))
    made.wait(2)
    until(lambda: made.way.pending() == 0, "all is deleted")
    lines = sorted(line.split() for line in made.stage.effects())
    assert lines == sorted(["order-1", str(worker.pid), each.delivery, "charge-1"] for each in (sent, again))
    assert "note" not in again.extra
    names = {each.detail["name"] for each in made.stage.room.events(None, Point.HIT)}
    assert names == {"ReceiveMessage"}
    begins = [each.delivery for each in made.stage.room.events(None, Point.BEGIN)]
    assert sorted(begins) == sorted([sent.delivery, again.delivery])
    assert made.way.targets() == {"broker": made.url}
    assert made.way.eager() is None
    assert made.way.redelivers_within("group") == VISIBILITY + 5


@pytest.mark.parametrize("victim", ["parent", "group"])
def test_what_a_killed_consumer_had_comes_again(shop: Callable[..., Shop], victim: Victim) -> None:
    made = shop()
    made.hold.touch()
    worker = made.start()
    made.send(1)
    made.wait(1)
    assert made.way.pending() == 1
    assert worker.kill(victim, int(made.stage.effects()[0].split()[1])) == -9
    assert made.way.pending() == 1
    made.hold.unlink()
    made.start()
    made.wait(2)
    until(lambda: made.way.pending() == 0, "it is deleted")


def test_others_are_seen_and_left_alone(shop: Callable[..., Shop]) -> None:
    first = shop()
    for number in range(3):
        first.send(number)
    made = shop(url=first.url)
    assert made.way.foreign() == [f"3 messages in the queue {made.url}"]
    made.send(7)
    made.way.clear()
    assert made.way.pending() == 3
    made.start()
    made.wait(3)
    assert sorted(made.orders()) == ["order-0", "order-1", "order-2"]


def test_an_own_queue_is_purged(shop: Callable[..., Shop]) -> None:
    made = shop()
    made.hold.touch()
    worker = made.start()
    made.send(1)
    made.wait(1)
    worker.end()
    made.send(2)
    made.way.clear()
    until(lambda: made.way.pending() == 0, "it is empty, with what a dead consumer had")


def test_a_fifo_queue_delivers_the_same_again_beside_the_first(shop: Callable[..., Shop]) -> None:
    made = shop(fifo=True)
    made.hold.touch()
    made.start()
    made.start()
    sent = made.send(1)
    assert sent.extra["group"] == "shop-1"
    again = made.known(1, made.way.send_again(sent))
    made.wait(2)
    assert len({line.split()[1] for line in made.stage.effects()}) == 2, "in both consumers at once"
    assert "another de-duplication id" in again.extra["note"]
    assert "deduplicated" not in again.extra


def test_a_queue_that_deduplicates_by_content_is_noted(shop: Callable[..., Shop]) -> None:
    made = shop(fifo=True, queue={"ContentBasedDeduplication": "true"})
    made.start()
    sent = made.send(1)
    made.send(1)
    again = made.known(1, made.way.send_again(sent))
    made.wait(2)
    until(lambda: made.way.pending() == 0, "all is deleted")
    assert {line.split()[2] for line in made.stage.effects()} == {sent.delivery, again.delivery}
    assert "de-duplicates by content" in again.extra["note"]


def test_a_consumer_is_ready_by_the_word_of_its_wrapper(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        environment = stage.surroundings.environment
        assert not has_polled(environment, [os.getpid()])
        wrapped = {"point": "hit", "pid": os.getpid(), "at": 1.0, "detail": {"name": "shop.charge"}}
        stage.journal.write_text(json.dumps(wrapped) + "\n")
        assert not has_polled(environment, [os.getpid()])
        polled = {**wrapped, "detail": {"name": "ReceiveMessage"}}
        cut = json.dumps(polled)[:40]
        stage.journal.write_text("\n".join([json.dumps(wrapped), cut, json.dumps(polled)]))
        assert has_polled(environment, [os.getpid()])
        assert not has_polled(environment, [1])
