"""A slot is read whole or not at all, however fast its child writes; and it outlives who wrote it."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.synchronize import Event

from semel.queue.worker.slots import SlotTable

SECONDS = 1.5


def write(descriptor: int, ready: Event) -> None:
    """One slot, taken, started and cleared as fast as can be; each claim's numbers are all the same."""
    table = SlotTable(descriptor, 1)
    ready.set()
    number = 0
    while True:
        number += 1
        index = table.take(number, number, number, float(number))
        table.start(index, float(number))
        table.clear(index)


def test_no_slot_is_read_torn() -> None:
    table = SlotTable.create(1)
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    writer = context.Process(target=write, args=(table.descriptor, ready), daemon=True)
    writer.start()
    ready.wait(10)
    seen, deadline = 0, time.monotonic() + SECONDS
    try:
        while time.monotonic() < deadline:
            for slot in table.read():
                seen += 1
                assert slot.job_id == slot.claim == slot.worker == slot.claimed, slot
                assert slot.deadline == (slot.claim if slot.started else 0), slot
    finally:
        writer.kill()
        writer.join()
        table.close()
    assert seen > 1_000


def test_a_child_that_dies_while_it_writes_leaves_no_slot_that_lies() -> None:
    """What it had not finished writing is passed over, so that its lease runs out."""
    table = SlotTable.create(2)
    table.take(1, 10, 100, 1.0)
    table.take(2, 20, 200, 1.0)
    os.pwrite(table.descriptor, b"\xff" * 8, 0)  # the number of a write that began
    assert [slot.job_id for slot in table.read()] == [2]
    table.close()


def test_a_word_to_a_child_that_is_gone_is_dropped() -> None:
    table = SlotTable.create(1)
    table.take(1, 10, 100, 1.0)
    table.close()
    table.mark_lost(0, 10)
