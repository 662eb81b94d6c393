"""A way to a broker that can be cut just when a message is on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Cutting:
    """Passes bytes between a client and a broker. ``cuts`` times, what holds ``marker`` ends the connection instead."""

    def __init__(self, port: int, marker: bytes, cuts: int) -> None:
        self.port = 0
        self.left = cuts
        self._broker = port
        self._marker = marker

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Cutting]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._broker)
        ways = [
            asyncio.create_task(self._pass(reader, back, self._marker)),
            asyncio.create_task(self._pass(there, writer, None)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for each in (writer, back):
            each.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, marker: bytes | None
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if marker is not None and self.left and marker in data:
                    self.left -= 1
                    return
                writer.write(data)
                await writer.drain()
