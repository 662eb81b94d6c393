"""What a child holds, in memory that its supervisor shares and that outlives it.

A slot is written before its handler starts and cleared after its settlement is confirmed. The supervisor extends exactly
these claims; a claim whose answer was lost is in no slot, so its lease runs out. Writer and reader take no lock: a slot
begins and ends with the same sequence number, and one that does not match is being written.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FREE: Final = 0
WAITING: Final = 1
STARTED: Final = 2

_SLOT: Final = struct.Struct(
    "=QqqqqddQ"
)  # sequence, state, id, claim, worker, claimed, deadline, sequence again
_SEQUENCE: Final = struct.Struct("=Q")
_LOST: Final = struct.Struct("=q")
_SIZE: Final = 80  # the slot, then the claim that the supervisor found lost
_LOST_AT: Final = _SLOT.size
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
        self._memory = mmap.mmap(descriptor, capacity * _SIZE)
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
        os.ftruncate(descriptor, capacity * _SIZE)
        return cls(descriptor, capacity)

    def close(self) -> None:
        self._memory.close()
        os.close(self.descriptor)

    @property
    def room(self) -> int:
        return len(self._free)

    def take(self, job_id: int, claim: int, worker: int, claimed: float) -> int:
        """Note a claim that waits to start; answers its slot."""
        index = self._free.pop()
        self._write(index, WAITING, job_id, claim, worker, claimed, 0.0)
        return index

    def start(self, index: int, deadline: float) -> None:
        """Note that its handler starts now."""
        _, _, job_id, claim, worker, claimed, _, _ = _SLOT.unpack_from(self._memory, index * _SIZE)
        self._write(index, STARTED, job_id, claim, worker, claimed, deadline)

    def clear(self, index: int) -> None:
        """Note that nothing is held here any more."""
        self._write(index, FREE, 0, 0, 0, 0.0, 0.0)
        self._free.append(index)

    def is_lost(self, index: int, claim: int) -> bool:
        """Whether the supervisor found this claim lost."""
        return bool(_LOST.unpack_from(self._memory, index * _SIZE + _LOST_AT)[0] == claim)

    def mark_lost(self, index: int, claim: int) -> None:
        """The supervisor's word to the child: this claim no longer holds."""
        _LOST.pack_into(self._memory, index * _SIZE + _LOST_AT, claim)

    def read(self) -> Iterator[Slot]:
        """Every claim that is held now. One that is being written is looked at a few times, then passed over."""
        for index in range(self.capacity):
            for _ in range(_TRIES):
                first, state, job_id, claim, worker, claimed, deadline, last = _SLOT.unpack_from(
                    self._memory, index * _SIZE
                )
                if first == last:
                    if state != FREE:
                        yield Slot(index, state == STARTED, job_id, claim, worker, claimed, deadline)
                    break

    def _write(
        self, index: int, state: int, job_id: int, claim: int, worker: int, claimed: float, deadline: float
    ) -> None:
        self._sequence += 1
        sequence, offset = self._sequence, index * _SIZE
        _SEQUENCE.pack_into(self._memory, offset, sequence)
        _SLOT.pack_into(
            self._memory, offset, sequence, state, job_id, claim, worker, claimed, deadline, sequence - 1
        )
        _SEQUENCE.pack_into(self._memory, offset + _SLOT.size - _SEQUENCE.size, sequence)
