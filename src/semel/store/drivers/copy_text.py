"""COPY for drivers that take a stream: no driver's codecs, which users may have replaced, are in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import TextIOBase

from semel.sql import Catalogue, quote_name
from semel.store.statement import Copy


def copy_command(copy: Copy, catalogue: Catalogue) -> str:
    """The statement that the stream follows."""
    columns = ", ".join(map(quote_name, copy.columns))
    return f"COPY {quote_name(catalogue.schema)}.{quote_name(copy.table)} ({columns}) FROM STDIN"


async def copy_bytes(copy: Copy) -> AsyncIterator[bytes]:
    """The pieces as asyncpg wants them."""
    for piece in copy.pieces:
        yield piece.encode()


class CopyReader(TextIOBase):
    """The pieces as a file to read, as psycopg 2 wants it."""

    def __init__(self, copy: Copy) -> None:
        self._pieces = iter(copy.pieces)
        self._rest = ""

    def read(self, size: int | None = -1, /) -> str:
        if not self._rest:
            self._rest = next(self._pieces, "")
        end = len(self._rest) if size is None or size < 0 else size
        piece, self._rest = self._rest[:end], self._rest[end:]
        return piece
