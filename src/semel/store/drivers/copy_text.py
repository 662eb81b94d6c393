"""COPY's text format, for drivers that take a stream: no driver's codecs, which users may have replaced, are
in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from io import TextIOBase
from typing import Final

from semel.sql import Catalogue, quote_name
from semel.store.statement import Copy, Row

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_CHUNK: Final = 64 * 1024


def copy_command(copy: Copy, catalogue: Catalogue) -> str:
    """The statement that the stream follows."""
    columns = ", ".join(map(quote_name, copy.columns))
    return f"COPY {quote_name(catalogue.schema)}.{quote_name(copy.table)} ({columns}) FROM STDIN"


def copy_stream(copy: Copy) -> Iterator[str]:
    """The rows, in pieces of about 64 kB."""
    lines: list[str] = []
    size = 0
    for row in copy.rows:
        lines.append(_line(row))
        size += len(lines[-1])
        if size >= _CHUNK:
            yield "".join(lines)
            lines, size = [], 0
    yield "".join(lines)


async def copy_bytes(copy: Copy) -> AsyncIterator[bytes]:
    """`copy_stream`, as asyncpg wants it."""
    for piece in copy_stream(copy):
        if piece:
            yield piece.encode()


class CopyReader(TextIOBase):
    """`copy_stream` as a file to read, as psycopg 2 wants it."""

    def __init__(self, copy: Copy) -> None:
        self._pieces = copy_stream(copy)
        self._rest = ""

    def read(self, size: int | None = -1, /) -> str:
        if not self._rest:
            self._rest = next(self._pieces, "")
        end = len(self._rest) if size is None or size < 0 else size
        piece, self._rest = self._rest[:end], self._rest[end:]
        return piece


def _line(row: Row) -> str:
    return "\t".join("\\N" if value is None else str(value).translate(_ESCAPES) for value in row) + "\n"
