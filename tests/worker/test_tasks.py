"""Loops end when they are told to, although a cancellation can be lost on its way."""

from __future__ import annotations

import asyncio

from semel.queue.worker.tasks import end_tasks


def test_a_loop_that_loses_a_cancellation_ends_all_the_same() -> None:
    async def run() -> list[int]:
        lost = [0]

        async def loop() -> None:
            while True:
                try:
                    await asyncio.sleep(60)
                except (
                    asyncio.CancelledError
                ):  # as asyncio.wait_for does, where the answer comes in the same moment
                    lost[0] += 1
                    if lost[0] > 2:
                        raise

        async def failing() -> None:
            raise ValueError

        tasks = [asyncio.create_task(loop()), asyncio.create_task(failing())]
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await end_tasks(tasks)
        return lost

    assert asyncio.run(run()) == [3]
