"""What breaks around a worker: its places, processes and words survive it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.worker.application import RUNS
from tests.worker.application import app as application
from tests.worker.helpers import LIMIT, ask, drain, make_app, show, until, wait_until
from tests.worker.processes import running

from semel import App
from semel.embedded.postmaster import is_alive
from semel.queue.worker.child import ChildOptions, _hello
from semel.queue.worker.engine import Engine
from semel.queue.worker.messages import Channel, Hello
from semel.queue.worker.nursery import Nursery

OPTIONS = ChildOptions(application="nowhere:app", channel=-1, slots=-1, capacity=0)
NONSENSE = (
    "import json, os, sys, time; os.write(json.loads(sys.argv[1])['channel'], b'nonsense\\n'); time.sleep(60)"
)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


async def keep_until_two_failures(command: Sequence[str], caplog: pytest.LogCaptureFixture) -> None:
    async def bury(child: object, wanted: bool) -> None: ...

    before = descriptors()
    nursery = Nursery(OPTIONS, timedelta(seconds=1), bury, command)
    place = asyncio.create_task(nursery.keep(None))
    await until(
        lambda: place.done() or sum("cannot start" in line for line in caplog.messages) >= 2,
        "a second try",
    )
    assert not place.done()
    await nursery.stop()
    async with asyncio.timeout(LIMIT):
        await place
    await until(lambda: descriptors() <= before, "every descriptor to be closed")


def test_a_place_whose_process_cannot_be_made_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        await keep_until_two_failures(("/nowhere/python",), caplog)

    asyncio.run(work())
    assert any("FileNotFoundError" in line for line in caplog.messages)


def test_a_place_whose_child_says_nonsense_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(keep_until_two_failures((sys.executable, "-c", NONSENSE), caplog))


def test_a_child_with_many_schedules_can_say_hello() -> None:
    app = App("postgresql://nowhere/")

    @app.job
    def tick(note: str) -> None: ...

    for number in range(400):
        app.schedule(every="1 h", name=f"every-hour-{number}", arguments={"note": "x" * 200})(tick)

    async def work() -> object:
        ours, theirs = socket.socketpair()
        here, there = await Channel.open(ours), await Channel.open(theirs)
        there.send(_hello(app, app.url, app.settings))
        try:
            return await here.receive(Hello)
        finally:
            here.close()
            there.close()

    hello = asyncio.run(work())
    assert isinstance(hello, Hello)
    assert len(hello.schedules) == 400


def test_a_handler_process_dies_with_its_child(database_url: str) -> None:
    ask(database_url, RUNS)
    with running(database_url, "--lease", "2 s") as worker:
        application.with_database(database_url).jobs["sits"].enqueue()
        ((handler,),) = wait_until(
            lambda: ask(database_url, "SELECT pid FROM public.runs"), "the handler to run"
        )
        (child,) = worker.children()
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: not is_alive(handler), "the handler's process to end", limit=0.5)


def keepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "semel-keeper"]


def test_a_second_cancellation_while_it_stops_ends_the_extending_too(database_url: str) -> None:
    app = make_app(database_url)
    began, release = threading.Event(), threading.Event()

    @app.job
    def slow() -> None:
        began.set()
        release.wait(LIMIT)

    async def serve() -> None:
        async with app.worker(stop_grace="30 s"):
            await asyncio.sleep(LIMIT)

    async def work() -> None:
        serving = asyncio.create_task(serve())
        await slow.aenqueue()
        await until(began.is_set, "the handler to run")
        for _ in range(3):
            serving.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await serving
        await until(lambda: not keepers(), "the keeper's end", limit=5)

    try:
        asyncio.run(work())
    finally:
        release.set()


def test_entering_raises_what_keeps_the_engine_from_starting(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(engine: Engine) -> bool:
        await asyncio.sleep(0.01)
        raise LookupError("no installation")

    monkeypatch.setattr(Engine, "run", fail)

    async def work() -> None:
        async with make_app(database_url).worker():
            pytest.fail("it was entered")

    with pytest.raises(LookupError, match="no installation"):
        asyncio.run(work())
    assert not keepers()


def test_drain_raises_where_the_worker_has_stopped(database_url: str) -> None:
    async def work() -> None:
        async with make_app(database_url).worker() as worker, asyncio.timeout(LIMIT):
            assert worker._engine is not None
            assert worker._running is not None
            worker._engine.stop()
            await worker._running
            with pytest.raises(RuntimeError, match="stopped"):
                await worker.drain()

    asyncio.run(work())


FORKS = """
import os
from semel.queue.worker.threads import Call

def forks():
    if os.fork():
        os.wait()

Call(forks, lambda result, error: print("done", flush=True)).run()
"""


def test_a_fork_in_a_handler_settles_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=LIMIT)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.parametrize("kind", ["forks", "forks_async", "forks_within"])
def test_a_fork_in_a_handler_of_a_worker_ends_with_the_handler(database_url: str, kind: str) -> None:
    app = make_app(database_url)
    pid = os.getpid()

    def fork() -> str:
        copy = os.fork()
        if not copy:
            raise SystemExit(7)
        _, status = os.waitpid(copy, 0)
        return f"{os.getpid() == pid}, {os.waitstatus_to_exitcode(status)}"

    @app.job
    def forks() -> str:
        return fork()

    @app.job
    async def forks_async() -> str:
        return fork()

    @app.job(transaction=True)
    def forks_within(connection: object) -> str:
        return fork()

    job = app.jobs[kind].enqueue()
    drain(app)
    assert show(database_url, job.id).result == "True, 7"
