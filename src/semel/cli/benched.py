"""The application that `semel bench` measures: jobs that do nothing, in a schema of their own."""

from __future__ import annotations

import time

from semel.queue.app import App

SCHEMA = "semel_bench"

app = App(schema=SCHEMA, concurrency=100)


@app.job
async def nothing(number: int, address: str) -> None:
    """Do nothing; with two arguments, so that there is something to decode."""


@app.job
async def note_start() -> float:
    """When this attempt started, by this machine's clock."""
    return time.time()
