"""What a child holds, in memory that its supervisor shares and that outlives it.

A slot is written before its handler starts and cleared after its settlement is confirmed. The supervisor extends exactly
these claims; a claim whose answer was lost is in no slot, so its lease runs out. Writer and reader take no lock: a slot
begins and ends with a sequence number, and where they differ it is being written.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FREE: Final = 0
WAITING: Final = 1
STARTED: Final = 2

# A slot is eleven words of eight bytes, each stored at once.
_BEGUN: Final = 0  # the number of the write that began
_STATE: Final = 1
_JOB: Final = 2
_CLAIM: Final = 3
_WORKER: Final = 4
_CLAIMED: Final = 5  # a double, as the deadline
_DEADLINE: Final = 6
_ENDED: Final = 7  # the number of the write that ended
_LOST: Final = 8  # the claim that the supervisor found lost
_KEPT: Final = 9  # the claim whose lease the supervisor extended last, written after the next
_KEPT_AT: Final = 10  # a double: when it asked for that
_WORDS: Final = 11
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Slot:
    """One claim as the supervisor reads it. Times are of the monotonic clock, which all processes of a machine share."""

    index: int
    started: bool
    job_id: int
    claim: int
    worker: int
    claimed: float
    deadline: float
    """When its time-out ends it; 0 for none."""


class SlotTable:
    """A fixed number of slots in a shared file without a name. One process writes them, another reads."""

    def __init__(self, descriptor: int, capacity: int) -> None:
        self.descriptor = descriptor
        self.capacity = capacity
        self._memory = mmap.mmap(descriptor, capacity * _WORDS * 8)
        self._numbers = memoryview(self._memory).cast("q")
        self._times = memoryview(self._memory).cast("d")
        self._closed = False
        self._free = list(range(capacity - 1, -1, -1))
        self._sequence = 0

    @classmethod
    def create(cls, capacity: int) -> SlotTable:
        """A new table, all free. Its descriptor can be handed to a child."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("semel-slots")
        else:  # pragma: no cover - macOS
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, capacity * _WORDS * 8)
        return cls(descriptor, capacity)

    def close(self) -> None:
        self._closed = True
        self._numbers.release()
        self._times.release()
        self._memory.close()
        os.close(self.descriptor)

    @property
    def room(self) -> int:
        return len(self._free)

    def take(self, job_id: int, claim: int, worker: int, claimed: float) -> int:
        """Note a claim that waits to start; answers its slot."""
        index = self._free.pop()
        at, numbers, times = index * _WORDS, self._numbers, self._times
        self._sequence = number = self._sequence + 1
        numbers[at + _BEGUN] = number
        numbers[at + _STATE] = WAITING
        numbers[at + _JOB] = job_id
        numbers[at + _CLAIM] = claim
        numbers[at + _WORKER] = worker
        times[at + _CLAIMED] = claimed
        times[at + _DEADLINE] = 0.0
        numbers[at + _ENDED] = number
        return index

    def start(self, index: int, deadline: float) -> None:
        """Note that its handler starts now."""
        at, numbers = index * _WORDS, self._numbers
        self._sequence = number = self._sequence + 1
        numbers[at + _BEGUN] = number
        numbers[at + _STATE] = STARTED
        self._times[at + _DEADLINE] = deadline
        numbers[at + _ENDED] = number

    def clear(self, index: int) -> None:
        """Note that nothing is held here any more."""
        self._numbers[index * _WORDS + _STATE] = FREE  # one word, so that there is nothing to tear
        self._free.append(index)

    def is_lost(self, index: int, claim: int) -> bool:
        """Whether the supervisor found this claim lost."""
        return bool(self._numbers[index * _WORDS + _LOST] == claim)

    def mark_lost(self, index: int, claim: int) -> None:
        """The supervisor's word to the child: this claim no longer holds. Nothing, where the table is closed."""
        if not self._closed:  # else the child ended while the database was asked
            self._numbers[index * _WORDS + _LOST] = claim

    def mark_kept(self, index: int, claim: int, asked: float) -> None:
        """The supervisor's word to the child: this claim's lease runs from ``asked`` on."""
        if not self._closed:
            self._times[index * _WORDS + _KEPT_AT] = asked
            self._numbers[index * _WORDS + _KEPT] = claim

    def held_since(self, index: int, claim: int) -> float:
        """From when on the lease of this claim runs surely: when it was claimed, or extended last."""
        at = index * _WORDS
        claimed = self._times[at + _CLAIMED]
        return max(claimed, self._times[at + _KEPT_AT]) if self._numbers[at + _KEPT] == claim else claimed

    def read(self) -> Iterator[Slot]:
        """Every claim that is held now. One that is being written is looked at a few times, then passed over."""
        for index in range(self.capacity):
            if self._numbers[index * _WORDS + _STATE] != FREE:
                slot = self._read(index)
                if slot is not None:
                    yield slot

    def _read(self, index: int) -> Slot | None:
        """The two numbers are read the other way round than they are written: so what lies between them was whole."""
        at, numbers, times = index * _WORDS, self._numbers, self._times
        for _ in range(_TRIES):
            ended = numbers[at + _ENDED]
            state = numbers[at + _STATE]
            slot = Slot(
                index,
                state == STARTED,
                numbers[at + _JOB],
                numbers[at + _CLAIM],
                numbers[at + _WORKER],
                times[at + _CLAIMED],
                times[at + _DEADLINE],
            )
            if numbers[at + _BEGUN] == ended:
                return slot if state != FREE else None
        return None
