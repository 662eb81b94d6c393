"""9: no connection to be had: the worker waits and goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo
from tests.worker.helpers import LIMIT, ask, make_app, show, until


@dataclass
class Role:
    """A role that may have so many connections, and no more."""

    owner: str
    name: str

    @property
    def url(self) -> str:
        return make_conninfo(self.owner, user=self.name)

    def allow(self, connections: int) -> None:
        ask(self.owner, f"ALTER ROLE {self.name} CONNECTION LIMIT {connections}")

    def cut(self) -> None:
        ask(
            self.owner, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", self.name
        )


@pytest.fixture
def role(database_url: str) -> Iterator[Role]:
    (name,) = ask(database_url, "SELECT current_database() || '_role'")[0]
    role = Role(database_url, name)
    ask(database_url, f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 8")
    ask(database_url, f"GRANT ALL ON SCHEMA semel TO {name}")
    for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
        ask(database_url, f"GRANT ALL ON ALL {kind} IN SCHEMA semel TO {name}")
    yield role
    role.cut()
    ask(database_url, f"DROP OWNED BY {name}")
    ask(database_url, f"DROP ROLE {name}")


def test_9_a_worker_waits_for_connections_and_goes_on(role: Role, caplog: pytest.LogCaptureFixture) -> None:
    """Cut off while a job runs: it is settled, and others run, as soon as there are connections again."""
    app = make_app(role.url)
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def charge(order: int) -> int:
        if order == 0:
            began.set()
            await go_on.wait()
        return order

    def enqueue(order: int) -> Any:
        return asyncio.to_thread(app.with_database(role.owner).jobs["charge"].enqueue, order)

    async def work() -> list[int]:
        async with app.worker(upkeep=False) as worker, asyncio.timeout(LIMIT):
            jobs = [await enqueue(0)]
            await began.wait()
            await asyncio.to_thread(role.allow, 0)
            await asyncio.to_thread(role.cut)
            go_on.set()
            jobs += [await enqueue(order) for order in (1, 2)]
            await until(lambda: "settling: " in caplog.text, "the worker to miss its connection")
            await until(lambda: "too many connections" in caplog.text, "a refusal")
            await asyncio.to_thread(role.allow, 8)
            await worker.drain()
            return [job.id for job in jobs]

    with caplog.at_level(logging.WARNING, "semel.worker"):
        ids = asyncio.run(work())
    for order, job_id in enumerate(ids):
        record = show(role.owner, job_id)
        assert (record.result, record.job.attempts) == (order, 1)


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_9_a_transaction_that_finds_no_connection_is_not_charged(role: Role, flavour: str) -> None:
    """Its handler has not begun: it waits for a second, even on its last attempt."""
    app = make_app(role.url)
    began = []

    def charge(connection: Any) -> str:
        began.append(connection)
        return "charged"

    async def charge_async(connection: Any) -> str:
        return charge(connection)

    app.job(kind="charge", transaction=True, max_attempts=1)(charge if flavour == "sync" else charge_async)

    async def work() -> int:
        async with app.worker(upkeep=False) as worker, asyncio.timeout(LIMIT):
            await worker.drain()
            await asyncio.to_thread(role.allow, 0)
            job = await asyncio.to_thread(app.with_database(role.owner).jobs["charge"].enqueue)
            await until(lambda: "too many" in (show(role.owner, job.id).job.last_error or ""), "the refusal")
            record = show(role.owner, job.id)
            assert record.errors == ()
            assert not began
            await asyncio.to_thread(role.allow, 8)
            await until(lambda: show(role.owner, job.id).result == "charged", "a connection")
            return job.id

    assert show(role.owner, asyncio.run(work())).job.attempts == 1
    assert len(began) == 1
