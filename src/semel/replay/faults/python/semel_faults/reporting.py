"""Say where this process is: a line in the journal, then a question to the control room, and what is answered."""

from __future__ import annotations

import contextvars
import json
import os
import signal
import socket
import subprocess
import threading
import time
from typing import Any


class Fault(Exception):
    """Raised in a worker because its replay said so."""


class LostConnection(ConnectionError):
    """As if the connection to the database were gone."""


class Reporter:
    """One process's mouth; forks share what it knows and report under their own pid."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._socket = told["socket"]
        self._journal = told["journal"]
        self.dwell = float(told.get("dwell", 0))
        self._current: contextvars.ContextVar[str] = contextvars.ContextVar(
            "semel_replay_delivery", default=""
        )
        self._open: list[str] = []
        self._inside: list[str] = []
        self._lock = threading.Lock()
        self.at_first: list[Any] = []
        """Called at the first delivery of each process: by then everything is imported."""
        self._looked: set[int] = set()

    def begin(self, delivery: str, **detail: Any) -> Any:
        """A delivery begins in this context; give what is answered to `end`."""
        if os.getpid() not in self._looked:
            self._looked.add(os.getpid())
            for look in self.at_first:
                look()
        mark = self._current.set(delivery)
        with self._lock:
            self._open.append(delivery)
        self.ask("begin", delivery, **detail)
        return mark

    def end(self, delivery: str, mark: Any = None, **detail: Any) -> None:
        """It is over."""
        with self._lock:
            if delivery in self._open:
                self._open.remove(delivery)
        if mark is not None:
            try:
                self._current.reset(mark)
            except ValueError:  # it ended in another context than it began in
                self._current.set("")
        self.ask("end", delivery, **detail)

    @property
    def delivery(self) -> str:
        """The one that this code runs for: by context, else the only one that this process has, else unknown."""
        known = self._current.get() or os.environ.get("SEMEL_REPLAY_DELIVERY", "")
        if known:
            return known
        with self._lock:
            return self._open[0] if len(self._open) == 1 else ""

    def is_outside(self, delivery: str) -> bool:
        """Whether it is surely not in the watched call: neither it is there, nor one that does not know whose it is."""
        with self._lock:
            return delivery not in self._inside and "" not in self._inside

    def ask(
        self,
        point: str,
        delivery: str | None = None,
        *,
        digest: str = "",
        pid: int | None = None,
        **detail: Any,
    ) -> str:
        """Report a point, and do what is to be done there. Raises where that is to be raised."""
        known = self.delivery if delivery is None else delivery
        event = {
            "point": point,
            "pid": pid or os.getpid(),
            "at": time.monotonic(),
            "thread": threading.get_ident(),
            "delivery": known,
            "digest": digest,
            "detail": detail,
        }
        line = json.dumps(event).encode() + b"\n"
        self._write(line)
        with self._lock:
            self._inside += [known] if point == "entry" else []
        do = self._answer(line)
        with self._lock:
            if point in ("return", "raised") and known in self._inside:
                self._inside.remove(known)
        return self._obey(do)

    def follow(self) -> None:
        """End this process as soon as the replay has: one that is left behind may be without its guard."""
        threading.Thread(target=self._follow, name="semel-replay", daemon=True).start()

    def _follow(self) -> None:
        try:
            with self._line_to_replay() as connection:
                connection.recv(1)
        except OSError:
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    def _line_to_replay(self) -> socket.socket:
        """A connection that nothing comes over; its end is the replay's."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self._socket)
        connection.sendall(json.dumps({"follow": os.getpid()}).encode() + b"\n")
        return connection

    def _obey(self, do: str) -> str:
        if do == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif do == "stop":
            self._stop()
        elif do == "raise":
            raise Fault("raised by the replay, after the effect")
        elif do == "cut":
            raise LostConnection("cut by the replay")
        return do

    def _stop(self) -> None:
        """Stop this process, threads and all, until somebody wakes it; a shell sees to it should the replay be killed.

        The signal goes to this thread: one to the process may be taken by another, and this one goes on meanwhile.
        """
        script = _KILL_IF_LEFT.format(pid=os.getpid())
        with self._line_to_replay() as connection:
            keeper = subprocess.Popen(["/bin/sh", "-c", script], stdin=connection.fileno())
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            keeper.kill()
            keeper.wait()

    def _write(self, line: bytes) -> None:
        """The newline goes in front: the line before may have been cut by a kill, and would spoil this one."""
        file = os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, b"\n" + line.rstrip(b"\n"))
        finally:
            os.close(file)

    def _answer(self, line: bytes) -> str:
        """``go`` where nobody answers: the replay is over."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.connect(self._socket)
                connection.sendall(line)
                with connection.makefile("rb") as answers:
                    return str(json.loads(answers.readline() or b'{"do": "go"}')["do"])
        except OSError:
            return "go"


_KILL_IF_LEFT = """
read gone
parent=$(ps -o ppid= -p $$ 2>/dev/null || cut -d' ' -f4 /proc/$$/stat)
[ "$((parent))" = {pid} ] && kill -9 {pid}
"""
"""A shell that waits for the replay's end, and ends the process that it was started by, if that is still there."""


def name_of(error: BaseException) -> str:
    """An error's name; of an outcome that an adapter made of an error, that error's."""
    cause = error.__cause__
    if cause is not None and type(error).__module__ == "semel.core.outcomes":
        return type(cause).__name__
    return type(error).__name__
