"""Handlers that run in a process of their own (``run_in="process"``): CPU-bound work beside the child's event loop.

Each process takes one job at a time over a pipe and is used again. A time-out or a stop kills the process, which costs
this job alone. Processes are started anew (spawned), import the application once, and die with their child, however
that ends: what it ran is run again elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from semel.queue.context import JobContext
from semel.queue.worker.threads import HandlerInterrupted, OneProcess

logger = logging.getLogger("semel.worker")

Report = Callable[[float | None, str | None], None]
_CONTEXT: Final = multiprocessing.get_context("spawn")
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Work:
    """What a process gets: whom to call and with what. ``context`` is None for a handler without one."""

    module: str
    name: str
    kind: str
    context: JobContext | None
    payload: bytes | str


class ProcessDied(Exception):
    """The process of a handler ended without an answer."""


class Worker:
    """One process and the pipe to it."""

    def __init__(self, application: str | None, url: str) -> None:
        self.pipe, theirs = _CONTEXT.Pipe()
        arguments = (theirs, application, url, list(sys.path))
        self.process = _CONTEXT.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def call(self, work: Work, report: Report) -> Any:
        """Run one job; blocks. Raises what the handler raised, or `ProcessDied`."""
        try:
            self.pipe.send(work)
            while True:
                word, value = self.pipe.recv()
                if word == "progress":
                    report(*value)
                elif word == "result":
                    return value
                elif word == "unsendable":
                    logger.warning("a job %s: its result is not stored: %s", work.kind, value)
                    return None
                else:
                    raise value
        except (EOFError, ConnectionResetError, BrokenPipeError) as error:
            self.process.join()
            raise ProcessDied(
                f"the process that ran the handler ended with exit code {self.process.exitcode}"
            ) from error

    def kill(self) -> None:
        self.process.kill()


class Processes:
    """Up to ``size`` processes, started when first needed.

    Where ``application`` names an App, handlers find it pointed to ``url``; else it is as its module makes it.
    """

    def __init__(self, size: int, application: str | None, url: str) -> None:
        self._application = application
        self._url = url
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="semel-process")

    def start(
        self, work: Work, report: Report, done: Callable[[Any, BaseException | None], None]
    ) -> Callable[[], None]:
        """Run ``work`` in a process; ``done`` is called on a thread. Answers how to interrupt it (by a kill)."""
        call = _Call(self, work, report, done)
        self._threads.submit(call.run)
        return call.interrupt

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for worker in self._idle:
                worker.kill()
            self._idle.clear()

    def take(self) -> Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Worker(self._application, self._url)

    def put_back(self, worker: Worker) -> None:
        with self._lock:
            self._idle.append(worker)


class _Call:
    def __init__(
        self,
        processes: Processes,
        work: Work,
        report: Report,
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        self._processes, self._work, self._report, self._done = processes, work, report, done
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._interrupted = False

    def run(self) -> None:
        try:
            self._done(self._run(), None)
        except BaseException as error:
            self._done(None, HandlerInterrupted() if self._interrupted else error)

    def interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
            if self._worker is not None:
                self._worker.kill()

    def _run(self) -> Any:
        worker = self._processes.take()
        with self._lock:
            if self._interrupted:
                worker.kill()
                raise HandlerInterrupted
            self._worker = worker
        try:
            return worker.call(self._work, self._report)
        finally:
            with self._lock:
                self._worker = None
                if not self._interrupted and worker.process.is_alive():
                    self._processes.put_back(worker)


def serve(pipe: Connection, application: str | None, url: str, path: list[str]) -> None:
    """The process's side: take work, answer, until the pipe closes."""
    _die_with_parent()
    sys.path[:] = path
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            work: Work = pipe.recv()
            try:
                answer = ("result", _call(work, application, url, pipe))
            except BaseException as error:
                answer = ("error", _portable(error))
            try:
                pipe.send(answer)
            except Exception as error:  # the result cannot travel: the handler is done all the same
                pipe.send(("unsendable", f"{type(error).__name__}: {error}"))


def _die_with_parent() -> None:
    """End with the child that started this process, in the middle of a handler too.

    A thread waits for the child's end; on Linux the kernel kills as well, also where a C call keeps this thread from running.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch(sentinel: int) -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, args=(parent.sentinel,), name="semel-parent", daemon=True).start()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a libc without prctl
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _call(work: Work, application: str | None, url: str, pipe: Connection) -> Any:
    job = _find(work, application, url)
    leading: list[Any] = []
    if work.context is not None:
        leading.append(_with_pipe(work.context, pipe))
    args, kwargs = job.signature.decode(work.payload)
    with OneProcess():
        return job.function(*leading, *args, **kwargs)


def _find(work: Work, application: str | None, url: str) -> Any:
    if application is not None:
        module, _, attribute = application.partition(":")
        app = importlib.import_module(module)
        for name in attribute.split("."):
            app = getattr(app, name)
        app.point_to(url)
        return app.jobs[work.kind]
    return getattr(importlib.import_module(work.module), work.name)


class _PipeState:
    """The attempt's state as its process knows it: it reports progress, and is killed rather than told."""

    lost = False
    stopping = False

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def report(self, fraction: float | None, message: str | None) -> None:
        self._pipe.send(("progress", (fraction, message)))


def _with_pipe(context: JobContext, pipe: Connection) -> JobContext:
    object.__setattr__(context, "_state", _PipeState(pipe))
    return context


def _portable(error: BaseException) -> BaseException:
    """The error, or one that says the same where it cannot travel; with its traceback as a note."""
    import traceback

    try:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        if type(copy) is not type(error):
            raise TypeError
    except Exception:
        copy = RuntimeError(f"{type(error).__qualname__}: {error}")
    copy.add_note("".join(traceback.format_exception(error)))
    return copy  # type: ignore[no-any-return]
