"""Keeps the leases of operations that were declared with ``extend=True``, from a thread beside the handlers."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

from semel.guard.operation import Handle
from semel.store.guard_end import extend
from semel.store.statement import Operation

Ask: TypeAlias = Callable[[Operation[bool]], bool]
logger = logging.getLogger("semel.guard")


class Beat:
    """One thread for all operations of a `Once`; it ends when nothing is kept. Each is kept for its longest run at most."""

    def __init__(self, asking: Callable[[], AbstractContextManager[Ask]]) -> None:
        self._asking = asking
        """What the thread asks with, for as long as it runs."""
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Condition()
        self._kept: dict[Handle, tuple[float, float]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def keep(self, handle: Handle) -> Iterator[None]:
        """Extend the handle's lease at each third of it, while the block runs."""
        if not handle.declaration.extend or handle.in_row:
            yield
            return
        now = time.monotonic()
        period = handle.request.lease.total_seconds() / 3
        end = now + handle.declaration.longest_run.total_seconds()
        if self._process != os.getpid():  # a fork inherits neither the thread nor what it kept
            self._start()
        with self._lock:
            self._kept[handle] = (now + period, end)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="semel-guard-beat", daemon=True)
                self._thread.start()
            self._lock.notify()
        try:
            yield
        finally:
            with self._lock:
                self._kept.pop(handle, None)
                self._lock.notify()

    def _run(self) -> None:
        with self._asking() as ask:
            while True:
                with self._lock:
                    if not self._kept:
                        self._thread = None
                        return
                    wait = min(due for due, _ in self._kept.values()) - time.monotonic()
                    if wait > 0:
                        self._lock.wait(wait)
                    now = time.monotonic()
                    due = [handle for handle, (at, _) in self._kept.items() if at <= now]
                for handle in due:
                    self._extend(handle, ask)

    def _extend(self, handle: Handle, ask: Ask) -> None:
        held: Any = True
        asked = time.monotonic()
        alone = None if handle.beside is None else handle.beside.lost()
        if alone is not None:
            self._end(handle, alone)
            return
        try:
            held = ask(extend(handle.request))
        except Exception as error:  # whatever it is, the other handles are still to be kept
            logger.warning("%s: its lease could not be extended: %s", handle.declaration.job_type, error)
        else:
            if held:
                handle.renewed(asked)
        with self._lock:
            kept = self._kept.get(handle)
            if kept is None:
                return
            if held and asked <= kept[1]:
                self._kept[handle] = (asked + handle.request.lease.total_seconds() / 3, kept[1])
                return
        if not held:
            handle.lose()
        self._end(handle, "the claim is lost" if not held else "it runs longer than longest_run")

    def _end(self, handle: Handle, reason: str) -> None:
        with self._lock:
            if self._kept.pop(handle, None) is None:
                return
        logger.error("%s: its lease is extended no more: %s", handle.declaration.job_type, reason)
