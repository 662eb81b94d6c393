"""Whose connection it is: the process at the other end of a TCP connection on this machine, by ``/proc``."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED: Final = "01"


@dataclass(frozen=True)
class Connection:
    """One end of an established connection: its own port, and the one that it leads to."""

    port: int
    peer: int
    inode: str


def can_look() -> bool:
    """Whether this machine tells."""
    return _TABLES[0].exists()


def process_of(port: int, peer: int, processes: Iterable[int]) -> int:
    """Which of the processes has the connection from ``port`` to ``peer``; 0 where nobody can tell."""
    inodes = {each.inode for each in _connections() if each.port == port and each.peer == peer}
    return next((pid for pid in processes if inodes & _sockets_of(pid)), 0) if inodes else 0


def ports_of(processes: Collection[int], peer: int | None = None) -> set[int]:
    """Their own ports of the connections that these processes have (to ``peer``)."""
    sockets = frozenset[str]().union(*map(_sockets_of, processes))
    return {each.port for each in _connections() if each.inode in sockets and peer in (None, each.peer)}


def _connections() -> Iterator[Connection]:
    for table in _TABLES:
        try:
            lines = table.read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _ESTABLISHED:
                yield Connection(_port(fields[1]), _port(fields[2]), fields[9])


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _sockets_of(pid: int) -> frozenset[str]:
    """The inodes of a process's sockets; none where it has ended, or is another user's."""
    folder = f"/proc/{pid}/fd"
    found = set()
    try:
        names = os.listdir(folder)  # noqa: PTH208  # names alone are needed, and often
    except OSError:
        return frozenset()
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return frozenset(found)
