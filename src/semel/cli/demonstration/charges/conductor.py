"""Sits in the payment provider: holds its answers while a worker is killed, and loses those that are to be lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from semel.cli.demonstration.charges.script import Fate

_LONGEST_WAIT: Final = 60.0
"""Seconds that an answer is held at most, should nobody be killed."""
_LOST: Final = MappingProxyType({Fate.LOST: 1, Fate.LOST_TWICE: 2})


class Conductor:
    """Called by the provider's threads with each point that a request reaches. Each card is of one order."""

    def __init__(self, provider: Any) -> None:
        self._points = {
            Fate.KILLED_CLAIMED: provider.CHECKED,
            Fate.KILLED_CALLING: provider.RECEIVED,
            Fate.KILLED_CHARGED: provider.CHARGED,
        }
        self._charged = provider.CHARGED
        self._lock = threading.Lock()
        self._fates: dict[str, Fate] = {}
        self._waiting: set[str] = set()
        self._reached: set[str] = set()
        self._lost: Counter[str] = Counter()
        self._killed = threading.Event()

    def __call__(self, point: str, card: str) -> bool:
        """Whether the provider goes on: it is held here where the worker is to be killed, and then does not."""
        with self._lock:
            fate = self._fates.get(card, Fate.WELL)
            killed = self._killed
            if fate in _LOST and point == self._charged and self._lost[card] < _LOST[fate]:
                self._lost[card] += 1
                return False
            if not fate.killed or point != self._points[fate] or card in self._reached:
                return True
            self._reached.add(card)
            self._waiting.add(card)
        killed.wait(_LONGEST_WAIT)
        return False

    def expect(self, fates: Mapping[str, Fate]) -> None:
        """What is to happen to these cards."""
        with self._lock:
            self._fates |= fates

    @property
    def waiting(self) -> Counter[Fate]:
        """How many callers wait for an answer, by what is to happen to them."""
        with self._lock:
            return Counter(self._fates[card] for card in self._waiting)

    def let_go(self) -> None:
        """The callers that waited are dead: end their requests, without an answer."""
        with self._lock:
            self._killed.set()
            self._killed = threading.Event()
            self._waiting.clear()

    @property
    def lost(self) -> int:
        """How many answers were lost behind a charge."""
        with self._lock:
            return self._lost.total()
