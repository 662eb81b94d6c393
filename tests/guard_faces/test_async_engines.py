"""A guard over an engine that only asyncio can use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from tests.guard.stored import Stored

from semel import Once


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], Any]) -> str:
    return str(make_database("postgresql"))


@pytest.mark.parametrize("loop", ["free", "busy"])
def test_extend_keeps_the_lease(url: str, loop: str) -> None:
    """The beat has a loop of its own: the handler's may be busy."""
    stored = Stored.at("postgresql", url)

    def revision() -> int:
        rows = stored.ask(f"SELECT revision FROM semel.operations WHERE job_type = '{loop}'")
        return int(rows[0][0])

    async def main() -> int:
        engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
        once = Once(engine)

        @once.operation(
            loop, key="order", extend=True, lease="0.6 s", longest_run="60 s", with_operation=False
        )
        async def charge(order: int) -> int:
            first = revision()
            ends = time.monotonic() + 20
            while revision() < first + 3 and time.monotonic() < ends:
                await asyncio.sleep(0.05 if loop == "free" else 0)
                if loop == "busy":
                    time.sleep(0.05)
            return revision() - first

        try:
            return await charge(1)
        finally:
            await once.aclose()
            await engine.dispose()

    try:
        assert asyncio.run(main()) >= 3
        rows = stored.ask(f"SELECT state, claim FROM semel.operations WHERE job_type = '{loop}'")
        assert rows == [("completed", 1)]
    finally:
        stored.close()
