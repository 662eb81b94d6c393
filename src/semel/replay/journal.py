"""The journal of a run: one line for each point that a worker reached, written by the worker itself."""

from __future__ import annotations

from pathlib import Path

import msgspec

from semel.replay.events import Event

_decoder = msgspec.json.Decoder(Event)


def read_journal(path: Path) -> list[Event]:
    """All whole lines, in the order of their writing; none where there is no journal yet.

    A worker that is killed while it writes may leave the beginning of a line: Linux ends a write between two pages of
    the file. Each line brings its own newline in front, so that no other is spoilt by it.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [event for line in lines if (event := _event(line)) is not None]


def _event(line: bytes) -> Event | None:
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError:
        return None
