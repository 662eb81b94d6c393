"""Handlers declared with ``def``, on threads that can be asked to end.

A thread cannot be stopped from outside. At a time-out or a stop the interpreter is asked to raise `HandlerInterrupted` in
it, which happens at its next bytecode: a handler that sits in a C call hears of it only when the call returns.
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, NoReturn, TypeVar

Answer = TypeVar("Answer")


class HandlerInterrupted(BaseException):
    """The worker wants this attempt to end: its time-out has passed, its claim is lost or the worker stops."""


class OneProcess:
    """A block that ends in the process it began in: a fork that a handler made and did not end ends with the block.

    Else the copy would settle the job a second time, over the worker's own connections.
    """

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:
            end_copy(error)


def end_copy(error: BaseException | None) -> NoReturn:
    """End a process that a handler forked, as the interpreter would end with this error."""
    if error is None:
        os._exit(0)
    code = error.code if isinstance(error, SystemExit) else 1
    os._exit(code & 0xFF if isinstance(code, int) else int(code is not None))


class Call:
    """One handler's run on a thread. `interrupt` may be called from any thread, at any time."""

    def __init__(
        self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        self._function = function
        self._done = done
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._interrupted = False

    def run(self) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result, error = self._guarded()
            _take_what_is_pending()
        except HandlerInterrupted as late:  # asked for while the handler ended
            error = error or late
        self._done(result, error)

    def interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
            if self._thread is not None:
                raise_in_thread(self._thread, HandlerInterrupted)

    def _guarded(self) -> tuple[Any, BaseException | None]:
        with self._lock:
            if self._interrupted:
                return None, HandlerInterrupted("before it started")
            self._thread = threading.get_ident()
        try:
            with OneProcess():
                return self._function(), None
        except BaseException as error:
            return None, error
        finally:
            with self._lock:
                self._thread = None


def _take_what_is_pending() -> None:
    """Entering a function is where the interpreter raises what another thread asked for."""


def raise_in_thread(thread: int, exception: type[BaseException]) -> None:
    """Ask the interpreter to raise ``exception`` in a thread at its next bytecode (PyThreadState_SetAsyncExc)."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(exception))


class Threads:
    """A pool of at most ``size`` threads, made as needed."""

    def __init__(self, size: int) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="semel-job")

    def start(
        self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]
    ) -> Callable[[], None]:
        """Run ``function`` on a thread, in a copy of this context; ``done`` is called there. Answers how to interrupt it."""
        context = contextvars.copy_context()
        call = Call(lambda: context.run(function), done)
        self._pool.submit(call.run)
        return call.interrupt

    def close(self) -> None:
        """Start nothing more; threads that still run are left to the end of the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)
