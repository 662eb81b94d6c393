"""A way to the server that tells its clients another process than the server's, as poolers do."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg.conninfo import conninfo_to_dict, make_conninfo


@contextmanager
def pooler(url: str) -> Iterator[str]:
    """The URL of such a way to the server of ``url``."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=_take_in, args=(door, url), daemon=True).start()
        port = door.getsockname()[1]
        yield make_conninfo(url, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
        door.shutdown(socket.SHUT_RDWR)


def _take_in(door: socket.socket, url: str) -> None:
    while True:
        try:
            client, _ = door.accept()
        except OSError:
            return
        server = _connect(url)
        threading.Thread(target=_pass, args=(client, server), daemon=True).start()
        threading.Thread(target=_answer, args=(server, client), daemon=True).start()


def _connect(url: str) -> socket.socket:
    place = conninfo_to_dict(url)
    host, port = str(place["host"]), int(str(place["port"]))
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    server = socket.socket(socket.AF_UNIX)
    server.connect(f"{host}/.s.PGSQL.{port}")
    return server


def _pass(source: socket.socket, target: socket.socket) -> None:
    """Until either end closes; the other thread may close both at any time."""
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def _answer(server: socket.socket, client: socket.socket) -> None:
    """Message by message: a letter, the length with itself, the rest."""
    with server, client, server.makefile("rb") as messages:
        while head := messages.read(5):
            rest = messages.read(struct.unpack("!I", head[1:])[0] - 4)
            client.sendall(head + (_another(rest) if head[:1] == b"K" else rest))


def _another(key: bytes) -> bytes:
    (process,) = struct.unpack("!I", key[:4])
    return struct.pack("!I", process ^ 1) + key[4:]
