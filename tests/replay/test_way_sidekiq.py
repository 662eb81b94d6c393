"""Sidekiq under replay, on a real Redis and a real worker: what is sent, seen, killed, and taken out again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from tests.adapters.brokers import Redis
from tests.adapters.sidekiq_fixtures import redis_server
from tests.adapters.sidekiq_rig import ROOT, Ruby
from tests.replay.support import Stage, staged
from tests.support.waiting import until

from semel.replay.description import SidekiqJob
from semel.replay.events import Do, Point
from semel.replay.journal import read_journal
from semel.replay.processes import Worker
from semel.replay.ways.addresses import shown_address
from semel.replay.ways.sidekiq import SidekiqWay

__all__ = ["redis_server"]

GEM = ROOT / "ruby" / "lib"
COMMAND = ["sidekiq", "-r", "./sidekiq_app.rb", "-t", "2"]


@dataclass
class Shop:
    """One job class of the shop under replay."""

    stage: Stage
    way: SidekiqWay
    client: Any

    def start(self, **options: Any) -> Worker:
        return self.way.start(self.stage.surroundings, **options)

    def send(self, number: int, amount: int = 5) -> Any:
        with self.stage.room.sending():
            sent = self.way.send({"order": f"order-{number}", "amount": amount}, number)
            self.stage.room.know(sent.delivery, number)
        return sent


@pytest.fixture
def shop(redis_server: Redis, tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Makes one; all end with the test."""
    if shutil.which("sidekiq") is None:
        if os.environ.get("CI"):
            pytest.fail("Sidekiq is not installed (Debian: apt-get install ruby-sidekiq)")
        pytest.skip("Sidekiq is not installed (Debian: apt-get install ruby-sidekiq)")
    url = redis_server.new_url()
    with ExitStack() as ended:

        def make(job_class: str = "ChargeJob", watch: str = "Provider#charge", **options: Any) -> Shop:
            return ended.enter_context(opened(url, tmp_path, job_class, watch, **options))

        yield make


@contextmanager
def opened(
    url: str, directory: Path, job_class: str, watch: str, *, worker: list[str] | None = None, **options: Any
) -> Iterator[Shop]:
    with staged(directory, watch=[watch], RUBYLIB=str(GEM), **options) as stage:
        deliver = SidekiqJob(job_class=job_class, worker=worker or COMMAND, redis_url=url)
        way = SidekiqWay(deliver, stage.plain)
        client = redis.Redis.from_url(url, decode_responses=True)
        try:
            yield Shop(stage, way, client)
        finally:
            stage.room.close()
            way.close()
            client.close()


def test_a_delivery_is_seen_from_begin_to_end(shop: Callable[..., Shop]) -> None:
    made = shop()
    assert made.way.foreign() == []
    made.stage.journal.write_text('{"point": "begin", "pi')  # of a worker that was killed while it wrote
    worker = made.start()
    made.send(1)
    end = made.stage.first(1, Point.END)
    assert made.stage.points(1) == ["begin", "entry", "return", "end"]
    assert end.pid == worker.pid
    assert made.stage.effects() == ["order-1 5"]
    entry, answer = (made.stage.room.events(1, point)[0] for point in (Point.ENTRY, Point.RETURN))
    assert entry.digest == answer.digest != ""
    assert answer.at - entry.at >= 0.02, "the effect dwells"
    assert [each.detail for each in made.stage.room.events(None, Point.HIT)] == [{"name": "Provider#charge"}]
    until(lambda: made.way.pending() == 0, "nothing is left")
    written = [each.point for each in read_journal(made.stage.journal)]
    assert written == ["hit", "begin", "entry", "return", "end"]


def test_the_same_message_comes_again_under_its_id(shop: Callable[..., Shop]) -> None:
    made = shop()
    made.start()
    again = made.way.send_again(made.send(1))
    made.stage.room.wait_for(1, Point.END, 2, 30)
    begins = made.stage.room.events(1, Point.BEGIN)
    assert [each.delivery for each in begins] == [again.delivery] * 2
    entries = made.stage.room.events(1, Point.ENTRY)
    assert len({each.digest for each in entries}) == 1
    assert made.stage.effects() == ["order-1 5"] * 2


def test_other_arguments_have_another_digest(shop: Callable[..., Shop]) -> None:
    made = shop()
    made.start()
    made.send(1, amount=5)
    made.send(2, amount=6)
    assert made.stage.first(1, Point.END)
    assert made.stage.first(2, Point.END)
    digests = {made.stage.room.events(number, Point.ENTRY)[0].digest for number in (1, 2)}
    assert len(digests) == 2


@pytest.mark.parametrize(("point", "effects"), [(Point.ENTRY, 0), (Point.RETURN, 1)])
def test_a_worker_dies_where_it_is_told_to(shop: Callable[..., Shop], point: Point, effects: int) -> None:
    made = shop()
    worker = made.start()
    made.stage.room.tell(1, point, Do.KILL)
    sent = made.send(1)
    assert worker.process.wait(30) == -signal.SIGKILL
    assert len(made.stage.effects()) == effects
    assert made.stage.points(1)[-1] == point
    until(lambda: made.way.pending() == 0, "what it had is gone with it")
    made.start()
    made.way.send_again(sent)
    made.stage.first(1, Point.END)
    assert len(made.stage.effects()) == effects + 1


def test_it_is_pending_while_a_worker_has_it(shop: Callable[..., Shop]) -> None:
    made = shop()
    made.send(1)
    assert made.way.pending() == 1
    made.stage.room.hold(1, Point.ENTRY)
    made.start()
    made.stage.first(1, Point.ENTRY)
    assert made.client.llen("queue:default") == 0
    assert made.way.pending() == 1
    made.stage.room.release(1, Point.ENTRY)
    until(lambda: made.way.pending() == 0, "it is over")


def test_a_stopped_worker_goes_on(shop: Callable[..., Shop]) -> None:
    made = shop()
    worker = made.start()
    made.stage.room.tell(1, Point.ENTRY, Do.STOP)
    made.send(1)
    until(lambda: Path(f"/proc/{worker.pid}/stat").read_text().split()[2] == "T", "it is stopped")
    assert made.stage.effects() == []
    worker.wake()
    made.stage.first(1, Point.END)
    assert made.stage.effects() == ["order-1 5"]


def test_what_it_raises_is_in_the_retries_by_the_end(shop: Callable[..., Shop]) -> None:
    made = shop()
    made.start()
    made.stage.room.tell(1, Point.RETURN, Do.RAISE)
    made.send(1)
    end = made.stage.first(1, Point.END)
    assert end.detail == {"error": "Semel::Faults::Raised"}
    assert made.client.zcard("retry") == 1
    until(lambda: made.way.pending() == 1, "its thread has nothing in its hand")
    made.way.clear()
    assert made.way.pending() == 0


@pytest.mark.parametrize(("job_class", "ends_in"), [("OnceJob", None), ("DyingJob", "dead")])
def test_its_class_says_how_often_it_is_tried(
    shop: Callable[..., Shop], job_class: str, ends_in: str | None
) -> None:
    made = shop(job_class)
    made.start()
    made.stage.room.tell(1, Point.RETURN, Do.RAISE)
    made.send(1)
    made.stage.first(1, Point.END)
    found = {name: made.client.zcard(name) for name in ("retry", "schedule", "dead")}
    assert {name for name, count in found.items() if count} == ({ends_in} if ends_in else set())


def test_how_often_is_its_classs_own_number(shop: Callable[..., Shop]) -> None:
    made = shop()
    made.start()
    made.stage.room.tell(1, Point.RETURN, Do.RAISE)
    made.send(1)
    made.stage.first(1, Point.END)
    (entry,) = made.client.zrange("retry", 0, -1)
    assert '"retry":1,' in entry, "not true, which is Sidekiq's 25"


ALONE = """
import pathlib, sys
from semel.replay.control import open_room
from semel.replay.events import Do, Point

with open_room(pathlib.Path(sys.argv[1])) as room:
    room.expect(1)
    room.tell(1, Point.ENTRY, Do.STOP)
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("at", ["idle", "stopped"])
def test_a_worker_ends_with_its_replay(shop: Callable[..., Shop], tmp_path: Path, at: str) -> None:
    made = shop()
    settings = Path(made.stage.surroundings.environment["SEMEL_REPLAY"])
    told = json.loads(settings.read_text())
    command = [sys.executable, "-c", ALONE, f"{told['socket']}-2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as replay:
        assert replay.stdout is not None
        assert replay.stdout.readline() == b"open\n"
        settings.write_text(json.dumps({**told, "socket": f"{told['socket']}-2"}))
        worker = made.start()
        if at == "stopped":
            made.way.send({"order": "order-1", "amount": 5}, 1)
            until(lambda: Path(f"/proc/{worker.pid}/stat").read_text().split()[2] == "T", "it is stopped")
        assert worker.is_alive()
        replay.kill()

    assert worker.process.wait(30) == -signal.SIGKILL
    assert made.stage.effects() == []


def test_a_call_that_raises_is_no_return(shop: Callable[..., Shop]) -> None:
    made = shop("RefusedJob", "Provider#refuse")
    made.start()
    made.send(1)
    made.stage.first(1, Point.END)
    assert made.stage.points(1) == ["begin", "entry", "raised", "end"]
    assert [each.detail for each in made.stage.room.events(None, Point.ESCAPED)] == [
        {"name": "Provider#decline"}
    ]


@pytest.mark.parametrize(
    ("job_class", "watch"), [("RefundJob", "Provider.refund"), ("LateJob", "Late#charge")]
)
def test_methods_of_classes_and_classes_made_otherwise(
    shop: Callable[..., Shop], job_class: str, watch: str
) -> None:
    made = shop(job_class, watch)
    made.start()
    made.send(1)
    made.stage.first(1, Point.END)
    assert made.stage.points(1) == ["begin", "entry", "return", "end"]
    assert len(made.stage.room.events(None, Point.HIT)) == 1


def test_others_are_seen_and_left_alone(shop: Callable[..., Shop]) -> None:
    first = shop()
    other = json.dumps({"class": "OtherJob", "jid": "other", "args": [], "queue": "default"})
    first.client.lpush("queue:default", other)
    first.client.zadd("retry", {other: 4_000_000_000})
    made = shop()
    assert made.way.foreign() == ["1 jobs in the queue default", "1 jobs in Sidekiq's set retry"]
    made.send(1)
    made.way.clear()
    assert first.client.lrange("queue:default", 0, -1) == [other]
    assert first.client.zcard("retry") == 1
    first.client.delete("queue:default")
    first.start()
    until(lambda: first.client.scard("processes") == 1, "it has told that it is there")
    assert first.way.foreign() == ["1 jobs in Sidekiq's set retry"]
    assert any(each.startswith("another Sidekiq process: ") for each in made.way.foreign())


def test_it_shows_no_password() -> None:
    assert shown_address("redis://user:secret@127.0.0.1/3?db=3", 6379) == "redis://127.0.0.1:6379/3"


GUARDED = ["begin", "claimed", "entry", "return", "completing", "completed", "end"]


def test_the_guards_points(shop: Callable[..., Shop], database_url: str) -> None:
    made = shop("GuardedJob", GUARD=database_url)
    made.start()
    sent = made.send(1)
    made.stage.first(1, Point.END)
    assert made.stage.points(1) == GUARDED
    made.way.send_again(sent)
    made.stage.room.wait_for(1, Point.END, 2, 30)
    assert made.stage.points(1) == [*GUARDED, "begin", "end"], "a repeat neither claims nor acts"


@pytest.mark.parametrize(
    ("point", "state"),
    [(Point.CLAIMED, "claimed"), (Point.COMPLETING, "claimed"), (Point.COMPLETED, "completed")],
)
def test_what_the_guard_has_stored_where_it_dies(
    shop: Callable[..., Shop], database_url: str, point: Point, state: str
) -> None:
    made = shop("GuardedJob", GUARD=database_url)
    worker = made.start()
    made.stage.room.tell(1, point, Do.KILL)
    made.send(1)
    assert worker.process.wait(30) == -signal.SIGKILL
    assert states(database_url) == [state]


@pytest.mark.parametrize("point", [Point.COMPLETING, Point.COMPLETED])
def test_a_lost_connection_at_the_completion(
    shop: Callable[..., Shop], database_url: str, point: Point
) -> None:
    made = shop("GuardedJob", GUARD=database_url)
    made.start()
    made.stage.room.tell(1, point, Do.CUT)
    made.send(1)
    made.stage.first(1, Point.END)
    tries = [str(each) for each in made.stage.points(1) if each.startswith("complet")]
    lost = ["completing"] if point is Point.COMPLETING else ["completing", "completed"]
    assert tries == [*lost, "completing", "completed"], "the guard asks again, on another connection"
    assert states(database_url) == ["completed"]
    assert made.stage.effects() == ["order-1 5"]


def test_a_blinded_guard_sees_no_repeat(shop: Callable[..., Shop], database_url: str) -> None:
    made = shop("GuardedJob", GUARD=database_url, blind=True)
    made.start()
    made.way.send_again(made.send(1))
    made.stage.room.wait_for(1, Point.END, 2, 30)
    assert made.stage.effects() == ["order-1 5"] * 2
    assert states(database_url) == ["completed"] * 2


def test_a_guard_without_its_constraint(shop: Callable[..., Shop], database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE semel.operations DROP CONSTRAINT operations_once CASCADE")
    made = shop("GuardedJob", GUARD=database_url, unconstrained=True)
    made.start()
    made.way.send_again(made.send(1))
    made.stage.room.wait_for(1, Point.END, 2, 30)
    assert made.stage.effects() == ["order-1 5"] * 2
    assert states(database_url) == ["completed"] * 2


@pytest.mark.parametrize("release", ["trixie", "forky"])
def test_the_points_on_other_versions(shop: Callable[..., Shop], database_url: str, release: str) -> None:
    root = Path(os.environ.get("SEMEL_CHROOTS") or ROOT / ".venv" / "chroots") / release
    ruby = Ruby(root)
    if not ruby.is_there():
        pytest.skip(f"{root} is not there: scripts/ruby-chroots.sh")
    path = "RUBYLIB=/semel/src/semel/replay/faults/ruby:/semel/ruby/lib"
    command = ["env", path, "sidekiq", "-r", "./tests/replay/sidekiq_app.rb", "-t", "2"]
    made = shop("GuardedJob", GUARD=database_url, worker=ruby.command(command))
    worker = made.start()
    sent = made.send(1)
    made.stage.first(1, Point.END)
    assert made.stage.points(1) == GUARDED
    made.stage.room.tell(2, Point.COMPLETED, Do.KILL)
    made.send(2)
    assert worker.process.wait(30) == -signal.SIGKILL
    assert states(database_url) == ["completed"] * 2
    made.start()
    made.way.send_again(sent)
    made.stage.room.wait_for(1, Point.END, 2, 30)
    assert len(made.stage.effects()) == 2
    until(lambda: made.way.pending() == 0, "nothing is left")


def states(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT state FROM semel.operations")]
