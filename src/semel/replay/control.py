"""Where workers report and ask: a Unix socket that answers one JSON line with another, and can hold the answer back.

A worker at a point waits for its answer, so whoever runs a check can let it meet another there, kill it from outside, or
tell it what to do; no check waits for time. A worker that dies while it waits closes its connection, which is no error.
"""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from semel.replay.events import Do, Event, Point

Key = tuple[int | None, Point]


class NotReached(Exception):
    """A check waited for something that did not come; it goes into the verdict, not to the caller."""


@dataclass
class _Gate:
    """What happens to who comes to one point of one operation."""

    do: Do = Do.GO
    turns: int = 1
    """How many arrivals it holds for."""
    held: bool = False
    opened: threading.Event = field(default_factory=threading.Event)


class ControlRoom:
    """What arrived, and what is to be done with what arrives. Thread-safe.

    Where others send too (``shared``), what comes under an id that no send told is theirs: of no operation.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._numbers: dict[str, int] = {}
        self._gates: dict[Key, _Gate] = {}
        self._together: dict[Key, int] = {}
        self._alone: int | None = None
        self._sending = 0
        self._open = True

    # who checks

    def know(self, delivery: str, operation: int) -> None:
        """This id of the broker's is a delivery of that operation."""
        with self._changed:
            self._numbers[delivery] = operation
            self._changed.notify_all()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """While a message is sent: a broker may deliver it before it answers the id, and what nobody knows waits for that."""
        with self._changed:
            self._sending += 1
        try:
            yield
        finally:
            with self._changed:
                self._sending -= 1
                self._changed.notify_all()

    def expect(self, operation: int | None) -> None:
        """The operation of every event that does not say whose it is; None: there are several."""
        with self._changed:
            self._alone = operation
            self._changed.notify_all()

    def hold(self, operation: int, point: Point) -> None:
        """Keep the next one that comes there, until `release`."""
        self._put(operation, point, _Gate(held=True))

    def tell(self, operation: int, point: Point, do: Do) -> None:
        """What the next one that comes there is to do."""
        self._put(operation, point, _Gate(do=do))

    def release(self, operation: int, point: Point, do: Do = Do.GO) -> None:
        """Let the one that is held there go on, or do something."""
        with self._changed:
            gate = self._gates.pop((operation, point), None)
        if gate is not None:
            gate.do = do
            gate.opened.set()

    def meet(self, operation: int, point: Point, parties: int) -> None:
        """Who comes there waits until so many are there, or `part` is called."""
        with self._changed:
            self._together[operation, point] = parties

    def part(self, operation: int, point: Point) -> None:
        """Nobody waits for others there any more."""
        with self._changed:
            self._together.pop((operation, point), None)
            self._changed.notify_all()

    def events(self, operation: int | None = None, point: Point | None = None) -> list[Event]:
        """What arrived so far, in order; of one operation, at one point."""
        with self._changed:
            return [
                each
                for each in self._events
                if (operation is None or each.operation == operation)
                and (point is None or each.point == point)
            ]

    def wait_for(self, operation: int, point: Point, count: int, patience: float) -> Event:
        """Wait until the operation has been there so often; that arrival. Raises `NotReached`."""
        self.wait_until(
            lambda: len(self.events(operation, point)) >= count,
            f"operation {operation} at {point} x{count}",
            patience,
        )
        return self.events(operation, point)[count - 1]

    def wait_until(self, true: Callable[[], bool], what: str, patience: float) -> None:
        """Wait for something about what arrived. Raises `NotReached`."""
        end = time.monotonic() + patience
        with self._changed:
            while not true():
                left = end - time.monotonic()
                if left <= 0:
                    raise NotReached(f"not seen in {patience:g} s: {what}")
                self._changed.wait(min(left, 0.5))

    def close(self) -> None:
        """Let everybody go on, now and later."""
        with self._changed:
            self._open = False
            gates, self._gates = list(self._gates.values()), {}
            self._together.clear()
            self._changed.notify_all()
        for gate in gates:
            gate.opened.set()

    # who reports

    def arrive(self, event: Event) -> Do:
        """Note an arrival; what it is to do, as soon as that is decided."""
        with self._changed:
            event = msgspec.structs.replace(event, operation=self._operation_of(event))
            self._events.append(event)
            self._changed.notify_all()
            key = (event.operation, event.point)
            gate = self._taken(key)
            self._wait_together(key)
        if gate is None:
            return Do.GO
        if gate.held:
            gate.opened.wait()
        return gate.do

    def _put(self, operation: int, point: Point, gate: _Gate) -> None:
        with self._changed:
            self._gates[operation, point] = gate

    def _operation_of(self, event: Event) -> int | None:
        """The condition is held. An id that no send told is of a message that the job itself or a redo sent, or others'."""
        if event.operation is not None:
            return event.operation
        if not event.delivery:
            return self._alone
        while event.delivery not in self._numbers and self._open and self._sending:
            self._changed.wait(0.1)
        return self._numbers.get(event.delivery, None if self._shared else self._alone)

    def _taken(self, key: Key) -> _Gate | None:
        """The gate that this arrival goes through; a held one stays until it is released."""
        gate = self._gates.get(key) if self._open else None
        if gate is None or gate.turns == 0:
            return None
        gate.turns -= 1
        if not gate.held:
            del self._gates[key]
        return gate

    def _wait_together(self, key: Key) -> None:
        while self._open and key in self._together:
            here = sum((each.operation, each.point) == key for each in self._events)
            if here >= self._together[key]:
                return
            self._changed.wait(0.5)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        line = self.rfile.readline()
        if not line:
            return
        if "follow" in msgspec.json.decode(line):
            self.rfile.read()  # until either is gone: the worker sees to itself then
            return
        room: ControlRoom = self.server.room  # type: ignore[attr-defined]
        event = msgspec.json.decode(line, type=Event)
        answer = {"do": room.arrive(event)}
        try:
            self.wfile.write(msgspec.json.encode(answer) + b"\n")
        except OSError:
            return  # it was killed while it waited


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256


@contextmanager
def open_room(socket: Path, *, shared: bool = False) -> Iterator[ControlRoom]:
    """A control room that workers reach at this path (under 100 bytes: a limit of Unix sockets)."""
    room = ControlRoom(shared=shared)
    with _Server(str(socket), _Handler) as server:
        server.room = room  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield room
        finally:
            room.close()
            server.shutdown()
    socket.unlink(missing_ok=True)
