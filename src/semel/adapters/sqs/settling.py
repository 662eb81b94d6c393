"""What is done with messages after their functions: deleted, hidden for a while, or left; in batches."""

from __future__ import annotations

import logging
import queue as queues
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from semel.adapters.sqs.endings import Ending, Fate, whole_seconds
from semel.adapters.sqs.in_hand import Heartbeat, InHand
from semel.adapters.sqs.queue import BATCH, Queue

logger = logging.getLogger("semel.sqs")

_LINGER: Final = 0.02
"""Seconds that an end waits for others, to be sent with them."""
_AT_ONCE: Final = 100
_TRIES: Final = 6
_FIRST_PAUSE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Settlement:
    """A message in hand, and what is to be done with it."""

    message: InHand
    ending: Ending
    tries: int = 0

    @property
    def name(self) -> str:
        return self.message.message.message_id


class Settling:
    """Carries out what was decided. A message stays hidden until it is: its visibility is extended meanwhile."""

    def __init__(self, queue: Queue, heartbeat: Heartbeat) -> None:
        self._queue = queue
        self._heartbeat = heartbeat

    def ends(self, ending: Ending) -> bool:
        """Whether a message that ends like this is out of the queue: in a FIFO group the next one may start."""
        if ending.fate is Fate.UNREADABLE:
            return self._queue.settings.dead_letter_queue is not None
        return ending.fate in (Fate.DELETE, Fate.REFUSE)

    def settle(self, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Carry these out. Answers what is to be tried again."""
        again: list[Settlement] = []
        deleted: list[Settlement] = []
        hidden: list[Settlement] = []
        for each in settlements:
            match each.ending.fate:
                case Fate.DELETE:
                    deleted.append(each)
                case Fate.REFUSE | Fate.UNREADABLE:
                    self._refuse(each, deleted, again)
                case Fate.LATER if each.message.lost() is None:
                    self._heartbeat.drop(each.message)
                    hidden.append(each)
                case _:  # left; or it is in other hands, whose visibility an old receipt is not to change
                    self._heartbeat.drop(each.message)
        for start in range(0, len(deleted), BATCH):
            again += self._delete(deleted[start : start + BATCH])
        for start in range(0, len(hidden), BATCH):
            again += self._hide(hidden[start : start + BATCH])
        return again

    def _refuse(self, refused: Settlement, deleted: list[Settlement], again: list[Settlement]) -> None:
        """To the dead letters first; only what is there, or is known of elsewhere, is deleted."""
        message = refused.message.message
        try:
            copied = self._queue.send_to_dead_letters(message, refused.ending.why)
        except Exception as error:  # whatever boto3 raises
            logger.warning("message %s: not copied to the dead-letter queue: %s", refused.name, error)
            self._try_again(refused, again, "it stays in the queue")
            return
        if copied:
            logger.warning("message %s: copied to the dead-letter queue", refused.name)
        if copied or refused.ending.fate is Fate.REFUSE:
            deleted.append(replace(refused, ending=Ending(Fate.DELETE, refused.ending.why)))
        else:
            logger.error(
                "message %s: left in the queue, which has no dead-letter queue: it comes again", refused.name
            )
            self._heartbeat.drop(refused.message)

    def _delete(self, batch: Sequence[Settlement]) -> list[Settlement]:
        again: list[Settlement] = []
        try:
            refused = self._queue.delete([each.message.message for each in batch])
        except Exception as error:  # whatever boto3 raises
            logger.warning("%d messages could not be deleted: %s", len(batch), error)
            for each in batch:
                self._try_again(each, again, "it was done and comes again, as a repeat")
            return again
        for place, each in enumerate(batch):
            refusal = refused.get(place)
            if refusal is not None and not refusal.final:
                self._try_again(each, again, "it was done and comes again, as a repeat")
                continue
            self._heartbeat.drop(each.message)
            if refusal is not None:
                logger.warning(
                    "message %s: done, and not deleted (%s): it comes again, as a repeat", each.name, refusal
                )
        return again

    def _hide(self, batch: Sequence[Settlement]) -> list[Settlement]:
        wanted = [
            (
                each.message.message,
                whole_seconds(each.ending.after, since_receipt=each.message.since_receipt),
            )
            for each in batch
        ]
        again: list[Settlement] = []
        try:
            refused = self._queue.hide(wanted)
        except Exception as error:  # whatever boto3 raises
            logger.warning("the visibility of %d messages could not be set: %s", len(batch), error)
            for each in batch:
                self._try_again(each, again, "it comes again when its visibility time-out ends")
            return again
        for place, refusal in refused.items():
            if refusal.final:
                logger.info("message %s: already visible again (%s)", batch[place].name, refusal)
            else:
                self._try_again(batch[place], again, "it comes again when its visibility time-out ends")
        return again

    def _try_again(self, failed: Settlement, again: list[Settlement], otherwise: str) -> None:
        if failed.tries + 1 < _TRIES:
            again.append(replace(failed, tries=failed.tries + 1))
            return
        self._heartbeat.drop(failed.message)
        logger.error("message %s: given up: %s", failed.name, otherwise)

    def settle_now(self, settlement: Settlement) -> None:
        """Carry one out before this returns, with pauses where SQS cannot be reached."""
        left = self.settle([settlement])
        while left:
            time.sleep(pause_before(left[0]))
            left = self.settle(left)


def pause_before(settlement: Settlement) -> float:
    """Seconds before the next try."""
    return float(_FIRST_PAUSE * 2 ** max(settlement.tries - 1, 0))


class Settler:
    """A thread that carries out what other threads decided, together where it comes together."""

    def __init__(self, settling: Settling) -> None:
        self._settling = settling
        self._told: queues.SimpleQueue[Settlement | None] = queues.SimpleQueue()
        self._again: list[tuple[float, Settlement]] = []
        self._thread = threading.Thread(target=self._run, name="semel-sqs-settle", daemon=True)
        self._thread.start()

    def put(self, message: InHand, ending: Ending) -> None:
        """Have it done soon."""
        self._told.put(Settlement(message, ending))

    def close(self, patience: float) -> bool:
        """Carry out all that was told and end; whether that was done in so many seconds."""
        self._told.put(None)
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _run(self) -> None:
        open_ = True
        while open_ or self._again:
            batch, closed = self._collect(wait=open_)
            open_ = open_ and not closed
            now = time.monotonic()
            batch += [each for due, each in self._again if due <= now]
            self._again = [(due, each) for due, each in self._again if due > now]
            try:
                failed = self._settling.settle(batch)
            except Exception:  # no message is worth the thread: each comes again by itself
                logger.exception("messages could not be settled")
                continue
            now = time.monotonic()
            self._again += [(now + pause_before(each), each) for each in failed]

    def _collect(self, *, wait: bool) -> tuple[list[Settlement], bool]:
        """What was told, waiting for the first of it and a moment for others; and whether that is the end."""
        first_due = min((due for due, _ in self._again), default=None)
        patience = None if first_due is None else max(0.0, first_due - time.monotonic())
        if not wait:
            time.sleep(patience or 0.0)
            return [], False
        batch: list[Settlement] = []
        until = None
        while len(batch) < _AT_ONCE:
            left = patience if until is None else max(0.0, until - time.monotonic())
            try:
                told = self._told.get(timeout=left)
            except queues.Empty:
                break
            if told is None:
                return batch, True
            batch.append(told)
            until = until or time.monotonic() + _LINGER
        return batch, False
