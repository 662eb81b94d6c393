"""The jobs of the crash and race tests. Each writes to the journal what it does."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.support.deaths import RECORD
from tests.support.journal import recorded

from semel import App, Backoff, JobContext, RetryPolicy

app = App("postgresql://nowhere", poll=0.1, timeout=90, timeout_grace=0.5, lease=1, stop_grace=10)
AGAIN_SOON = RetryPolicy(backoff=Backoff(base=0.05, factor=1))


@app.job(context=True)
async def quick(context: JobContext, seconds: float = 0.0) -> int:
    with recorded(context):
        await asyncio.sleep(seconds)
    return os.getpid()


@app.job(context=True)
def quick_sync(context: JobContext, seconds: float = 0.0) -> None:
    """Sleeps in small pieces, so that it can be interrupted."""
    with recorded(context):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.01)


@app.job(context=True)
async def wait_for(context: JobContext, path: str) -> int:
    """Runs until the file is there."""
    with recorded(context):
        while not Path(path).exists():
            await asyncio.sleep(0.02)
    return os.getpid()


@app.job(context=True)
def wait_for_sync(context: JobContext, path: str) -> int:
    with recorded(context):
        while not Path(path).exists():
            time.sleep(0.02)
    return os.getpid()


@app.job(context=True)
async def block_loop(context: JobContext, seconds: float) -> None:
    """Holds up its event loop."""
    with recorded(context):
        time.sleep(seconds)


@app.job(context=True)
def hold_interpreter(context: JobContext, seconds: float) -> None:
    """Keeps the interpreter's lock in a C call."""
    with recorded(context):
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@app.job(context=True)
def sit_in_a_call(context: JobContext, seconds: float) -> None:
    """Cannot be interrupted."""
    with recorded(context):
        time.sleep(seconds)


@app.job(context=True)
async def kill_worker(context: JobContext, times: int = 1000) -> None:
    """Kills its process as long as its crashes are fewer than ``times``; not a process that a test runs in."""
    with recorded(context):
        if context.crashes < times and RECORD in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)


@app.job(context=True)
async def kill_all(context: JobContext) -> None:
    """Kills its supervisor and its process, each time: as where memory runs out and a whole container goes."""
    with recorded(context):
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(context=True, transaction=True)
async def add_row(context: JobContext, connection: Any) -> None:
    """Its effect is a row, in the transaction that ends the job."""
    with recorded(context):
        await connection.execute("INSERT INTO effects (job) VALUES (%s)", (context.job_id,))


@app.job(context=True, transaction=True)
def add_row_sync(context: JobContext, connection: Any) -> None:
    with recorded(context):
        connection.execute("INSERT INTO effects (job) VALUES (%s)", (context.job_id,))


@app.job(context=True, transaction=True)
def add_row_when(context: JobContext, connection: Any, path: str) -> None:
    """Adds its row, then goes on until the file is there."""
    with recorded(context):
        connection.execute("INSERT INTO effects (job) VALUES (%s)", (context.job_id,))
        while not Path(path).exists():
            time.sleep(0.01)
