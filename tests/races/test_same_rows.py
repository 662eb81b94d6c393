"""Completions, extensions and give-backs of the same rows at once: nothing is lost, nothing is done twice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.support.rivals import LEASE, Rival, pairs, settling
from tests.support.stored import statuses, unfinished

from semel import App
from semel.errors import RetryTransaction
from semel.store.jobs import Detail, Fence, extend, give_back
from semel.store.statement import Operation

ROWS = 400
Answer = TypeVar("Answer")


def insist(rival: Rival, operation: Operation[Answer]) -> Answer:
    """Again after a deadlock, as the worker's links do."""
    while True:
        try:
            return rival.does(operation)
        except RetryTransaction:
            time.sleep(random.uniform(0, 0.05))


def batches(held: list[Fence], seed: int) -> Iterator[list[Fence]]:
    """All of them in a random order, in batches of many sizes."""
    order = list(held)
    random.Random(seed).shuffle(order)
    while order:
        size = random.Random(seed + len(order)).randint(1, 80)
        yield order[:size]
        del order[:size]


def test_each_row_is_ended_once_whoever_comes_first(
    app: App, rival: Callable[[], Rival], database_url: str
) -> None:
    app.jobs["quick"].enqueue_many([()] * ROWS)
    held = rival().claims(limit=500) + rival().claims(limit=200) + rival().claims(limit=200)
    while len(held) < ROWS:
        held += rival().claims(limit=100)

    def completes(mine: Rival) -> set[tuple[int, int]]:
        return {pair for batch in batches(held, 1) for pair in insist(mine, settling(batch))}

    def postpones(mine: Rival) -> set[tuple[int, int]]:
        ended = set()
        for batch in batches(held, 2):
            details = [Detail(fence.job_id, fence.claim, status="pending", delay=3600) for fence in batch]
            ended |= insist(mine, settling(batch, *details))
        return ended

    def gives_back(mine: Rival) -> int:
        return sum(insist(mine, give_back(batch)) for batch in batches(held, 3))

    def extends(mine: Rival) -> list[frozenset[tuple[int, int]]]:
        return [
            insist(mine, extend(batch, lease=LEASE)) for seed in range(4, 9) for batch in batches(held, seed)
        ]

    rivals = [rival() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        done, later, back, lost = [
            threads.submit(work, mine)
            for work, mine in zip((completes, postpones, gives_back, extends), rivals, strict=True)
        ]
    assert done.result() & later.result() == set()
    assert len(done.result()) + len(later.result()) + back.result() == ROWS
    counted = statuses(database_url)
    assert counted.get("done", 0) == len(done.result())
    assert counted.get("pending", 0) == len(later.result()) + back.result()
    assert "running" not in counted
    assert set().union(*lost.result()) <= pairs(held)
    assert insist(rivals[0], extend(held, lease=LEASE)) == pairs(held), "every claim is over"
    assert unfinished(database_url) == counted.get("pending", 0)


def test_many_claimers_share_what_is_due(app: App, rival: Callable[[], Rival]) -> None:
    app.jobs["quick"].enqueue_many([()] * 2_000)

    def takes(mine: Rival, worker: int) -> list[Fence]:
        taken: list[Fence] = []
        while batch := mine.claims(worker=worker, limit=20):
            taken += batch
        return taken

    rivals = [rival() for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        taken = [fence for each in threads.map(takes, rivals, range(6)) for fence in each]
    assert (
        len(taken) == len({fence.job_id for fence in taken}) == len({fence.claim for fence in taken}) == 2_000
    )
