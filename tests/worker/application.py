"""The application that worker processes load in these tests. Handlers note their runs in the test's own table."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import psycopg

from semel import App, Backoff, Cancel, HoldForPerson, JobContext, RetryPolicy, Rule, Snooze

app = App(poll="50 ms", timeout_grace="500 ms", stop_grace="5 s")


class Declined(Exception):
    """An error that does not travel between processes by itself: it cannot be made from its arguments."""

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(f"declined with {code}: {why}")


RUNS = "CREATE TABLE public.runs (job_id bigint, attempt integer, pid integer, at timestamptz DEFAULT clock_timestamp())"


def note(context: JobContext) -> None:
    """Commit a row about this attempt."""
    with psycopg.connect(app.url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO public.runs VALUES (%s, %s, %s)", (context.job_id, context.attempt, os.getpid())
        )


@app.job
async def nothing() -> None:
    """What the queue itself costs."""


@app.job
async def fails(reason: str = "no reason") -> None:
    raise ValueError(reason)


@app.job(context=True)
async def quick(context: JobContext, number: int = 0) -> int:
    await asyncio.to_thread(note, context)
    context.log.info("counted", extra={"number": number})
    return number


@app.job(context=True)
async def waits(context: JobContext, seconds: float = 60) -> None:
    await asyncio.to_thread(note, context)
    await asyncio.sleep(seconds)


@app.job(context=True, timeout="1 s", max_attempts=2)
async def obeys(context: JobContext) -> None:
    note(context)
    await asyncio.sleep(60)


@app.job(context=True, timeout="1 s", max_attempts=1)
async def swallows(context: JobContext) -> None:
    note(context)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            context.log.info("not now")


@app.job(context=True, timeout="1 s")
def spins(context: JobContext) -> None:
    note(context)
    while True:
        pass


@app.job(context=True, timeout="1 s")
def stuck(context: JobContext) -> None:
    note(context)
    time.sleep(60)


@app.job(run_in="process", timeout="30 s")
def squares(number: int) -> list[int]:
    """The square, and where it was taken."""
    return [number * number, os.getpid()]


@app.job(run_in="process", retry=RetryPolicy(backoff=Backoff(base="1 h")))
def divides(number: int) -> float:
    return 1 / number


@app.job(run_in="process", retry=RetryPolicy(rules=(Rule(Declined, "fail"),)))
def declined(code: int) -> None:
    raise Declined(code, why="no money")


@app.job(run_in="process")
def snoozes() -> None:
    raise Snooze(for_="1 h", reason="the bank is closed")


@app.job(run_in="process", max_attempts=1)
def leaves(code: int) -> None:
    os._exit(code)


@app.job(run_in="process")
def answers_oddly() -> object:
    return threading.Lock()


@app.job(context=True, run_in="process", timeout="2 s", max_attempts=1)
def crunches(context: JobContext) -> None:
    note(context)
    context.progress(0.5, "half of it")
    time.sleep(60)


@app.job(context=True, run_in="process")
def sits(context: JobContext) -> None:
    note(context)
    time.sleep(60)


@app.job
async def snoozes_here() -> None:
    raise Snooze(for_="1 h", reason="the bank is closed")


@app.job
async def cancels() -> None:
    raise Cancel("withdrawn")


@app.job
async def holds() -> None:
    raise HoldForPerson("was it charged?")


@app.job(max_attempts=1)
async def fails_at_once() -> None:
    raise ValueError("no reason")
