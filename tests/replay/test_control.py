"""The control room tells whose an event is, without a wait where nobody is going to say."""

from __future__ import annotations

import threading
import time

from semel.replay.control import ControlRoom
from semel.replay.events import Do, Event, Point


def event(delivery: str) -> Event:
    return Event(point=Point.BEGIN, pid=1, at=time.monotonic(), delivery=delivery)


def test_a_delivery_that_comes_before_its_id_is_told_waits_for_it() -> None:
    room = ControlRoom()
    room.expect(7)
    arriving = threading.Thread(target=room.arrive, args=(event("message-8"),))
    with room.sending():
        arriving.start()
        room.know("message-8", 8)
    arriving.join(20)

    assert [each.operation for each in room.events()] == [8]


def test_a_delivery_whose_id_is_no_ones_is_the_awaited_operations_at_once() -> None:
    """As one that a person's redo sent: its id is told by nobody."""
    room = ControlRoom()
    room.expect(7)
    began = time.monotonic()
    room.arrive(event("of a redo"))

    assert time.monotonic() - began < 1, "it did not wait for a send that is not there"
    assert [each.operation for each in room.events()] == [7]


def test_a_send_that_ends_without_an_id_lets_go_of_who_waited() -> None:
    room = ControlRoom()
    room.expect(7)
    arriving = threading.Thread(target=room.arrive, args=(event("other"),))
    with room.sending():
        arriving.start()
    arriving.join(20)

    assert [each.operation for each in room.events()] == [7]


def test_where_others_send_too_a_delivery_of_theirs_is_of_no_operation() -> None:
    room = ControlRoom(shared=True)
    room.expect(7)
    room.know("ours", 7)
    room.hold(7, Point.BEGIN)
    assert room.arrive(event("theirs")) is Do.GO, "it is not held, or killed, in the place of ours"
    room.release(7, Point.BEGIN)
    room.arrive(event("ours"))
    room.arrive(event(""))
    assert [each.operation for each in room.events()] == [None, 7, 7]
