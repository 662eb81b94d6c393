"""10: 12 replicas at once, two of them killed, rows cleaned up meanwhile: one job a tick, none missed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from tests.schedules.helpers import ticks_over
from tests.worker.helpers import ask, perform

from semel.store.upkeep import finish_kept, purge_ticks

ROOT = Path(__file__).parents[2]
TICKS = 30
END = "UPDATE jobs SET status = 'done' WHERE id IN (SELECT id FROM jobs WHERE live LIMIT 5) RETURNING meta ->> 'tick'"


@contextmanager
def process(url: str) -> Iterator[subprocess.Popen[str]]:
    """A replica that is ready and waits for a line to start."""
    command = [sys.executable, "-m", "tests.schedules.replica", url]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as replica:
        try:
            yield replica
        finally:
            replica.kill()


def end_and_clean(url: str, seen: Counter[datetime]) -> None:
    """End some of the jobs, and take them away: at times moved to the history, at times deleted."""
    for (tick,) in ask(url, END):
        seen[datetime.fromisoformat(tick)] += 1
    if len(seen) % 2:
        perform(url, finish_kept(remember=timedelta(0)))
    else:
        ask(url, "DELETE FROM jobs WHERE NOT live")
    ask(url, "DELETE FROM jobs_done")
    perform(url, purge_ticks(keep=timedelta(days=90)))


async def watch(url: str, killed: list[subprocess.Popen[str]]) -> Counter[datetime]:
    seen: Counter[datetime] = Counter()
    replicas = [asyncio.create_task(ticks_over(url).run()) for _ in range(10)]
    for replica in killed:
        assert replica.stdin is not None
        replica.stdin.write("go\n")
        replica.stdin.flush()
    async with asyncio.timeout(TICKS + 60):
        while len(seen) < TICKS:
            await asyncio.to_thread(end_and_clean, url, seen)
            for number, replica in enumerate(killed, 1):
                if len(seen) >= 10 * number:
                    replica.kill()
            await asyncio.sleep(0.2)
    for task in replicas:
        task.cancel()
    await asyncio.gather(*replicas, return_exceptions=True)
    return seen


def test_10_twelve_replicas_and_one_job_a_tick(database_url: str) -> None:
    with process(database_url) as one, process(database_url) as two:
        for replica in (one, two):
            assert replica.stdout is not None
            assert replica.stdout.readline() == "ready\n"
        seen = asyncio.run(watch(database_url, [one, two]))
        assert (one.poll(), two.poll()) == (-9, -9)
    ticks = sorted(seen)
    assert set(seen.values()) == {1}, "a tick got more than one job"
    assert ticks == [ticks[0] + timedelta(seconds=number) for number in range(len(ticks))], (
        "a tick is missing"
    )
    stored = ask(database_url, "SELECT count(*) FROM schedule_ticks WHERE tick <= %s", ticks[-1])
    assert stored == [(len(ticks),)]
