"""Messages that were received and not settled yet: hidden from others as long as their visibility is extended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from semel.adapters.sqs.endings import LONGEST, MARGIN, whole_seconds
from semel.adapters.sqs.message import Message
from semel.adapters.sqs.queue import BATCH, Queue, Refusal

logger = logging.getLogger("semel.sqs")

_SOONER: Final = 1 / 10
"""Of a visibility time-out: when an extension that could not be sent is tried again; and what is sent along with others."""


class InHand:
    """A message in hand. What is beside the claim of a guarded function: the two are kept together or not at all."""

    def __init__(self, message: Message, *, visibility: float, received: float | None = None) -> None:
        now = time.monotonic()
        self.message = message
        self.visibility = visibility
        self.received = now if received is None else received
        self.hidden_until = self.received + visibility
        self.due = self.received + visibility / 3
        self.longest_until = self._ceiling = self.received + (LONGEST - MARGIN).total_seconds()
        self._gone: str | None = None

    @property
    def since_receipt(self) -> float:
        """Seconds."""
        return time.monotonic() - self.received

    def start(self, longest_run: float) -> None:
        """A function is called for it now, and is not to take longer than this."""
        self.longest_until = min(self._ceiling, time.monotonic() + longest_run)

    def lost(self) -> str | None:
        """Why somebody else may have the message by now."""
        if self._gone is None and time.monotonic() >= self.hidden_until:
            self._gone = "its message's visibility time-out ended"
        return self._gone

    def claim_lost(self) -> None:
        """Let it go: what this attempt does counts no more."""
        self.let_go("the claim is lost")

    def let_go(self, reason: str) -> None:
        """Hide it no longer."""
        self._gone = self._gone or reason

    def extended(self, asked: float, seconds: int) -> None:
        """It is hidden for so long from when that was asked."""
        self.hidden_until = asked + seconds
        self.due = asked + self.visibility / 3

    def wanted(self, now: float) -> int:
        """For how many seconds it is to be hidden from now on; 0: it is let go, having been in hand for too long."""
        if now > self.longest_until:
            return 0
        return whole_seconds(timedelta(seconds=self.visibility), since_receipt=now - self.received)


class Heartbeat:
    """Extends the visibility of what is in hand, at each third of it, from a thread that ends when nothing is."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._changed = threading.Condition()
        self._kept: set[InHand] = set()
        self._sending: frozenset[InHand] = frozenset()
        self._thread: threading.Thread | None = None

    def keep(self, messages: Sequence[InHand]) -> None:
        """Extend these from now on."""
        with self._changed:
            self._kept.update(messages)
            if self._thread is None and self._kept:
                self._thread = threading.Thread(target=self._run, name="semel-sqs-beat", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def drop(self, message: InHand) -> None:
        """Extend it no more, and return when no extension of it is under way: what is asked next is what counts."""
        with self._changed:
            self._kept.discard(message)
            self._changed.notify_all()
            self._changed.wait_for(lambda: message not in self._sending, timeout=message.visibility)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._kept:
                    self._thread = None
                    return
                now = time.monotonic()
                first = min(self._kept, key=lambda each: each.due)
                if first.due > now:
                    self._changed.wait(first.due - now)
                    continue
                soon = [each for each in self._kept if each.due <= now + each.visibility * _SOONER]
                batch = sorted(soon, key=lambda each: each.due)[:BATCH]
                self._sending = frozenset(batch)
            try:
                self._extend(batch)
            except Exception:  # the others are still to be kept
                logger.exception("the visibility of messages could not be extended")
            finally:
                with self._changed:
                    self._sending = frozenset()
                    self._changed.notify_all()

    def _extend(self, batch: Sequence[InHand]) -> None:
        now = time.monotonic()
        wanted = []
        for each in batch:
            each.due = now + each.visibility * _SOONER  # until it is extended
            seconds = each.wanted(now)
            if each.lost() is not None or seconds == 0:
                self._give_up(each, each.lost() or "it runs longer than longest_run, or than SQS allows")
            else:
                wanted.append((each, seconds))
        if not wanted:
            return
        refused: dict[int, Refusal] = {}
        try:
            refused = self._queue.hide([(each.message, seconds) for each, seconds in wanted])
        except Exception as error:  # whatever boto3 raises: tried again before the time-out ends
            logger.warning("the visibility of %d messages could not be extended: %s", len(wanted), error)
            return
        for place, (each, seconds) in enumerate(wanted):
            if place not in refused:
                each.extended(now, seconds)
            elif refused[place].final:
                each.let_go(f"its visibility cannot be extended ({refused[place]})")
                self._give_up(each, each.lost() or "")

    def _give_up(self, message: InHand, reason: str) -> None:
        with self._changed:
            if message not in self._kept:
                return
            self._kept.discard(message)
        logger.error(
            "message %s: its visibility is extended no more: %s",
            message.message.message_id,
            reason,
            extra={"message_id": message.message.message_id, "reason": reason},
        )
