"""``semel demo``: a sign-up application on a server of its own, through a bad day."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import secrets
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from rich.console import Console

from semel.cli.demonstration.example import SPEED, load_example
from semel.cli.demonstration.figures import Figures, count
from semel.cli.demonstration.mail_server import MailServer
from semel.cli.demonstration.promises import NOT_GUARANTEED, PromiseBroken, broken_promises
from semel.cli.demonstration.report import print_report
from semel.cli.demonstration.screen import Screen, choose_screen
from semel.cli.demonstration.stage import Stage
from semel.cli.demonstration.story import Story
from semel.cli.output import print_json
from semel.store.session import open_session

_INTERRUPTED: Final = 130
_WIDTH: Final = 120
"""Columns, where the output does not go to a terminal."""

_DESCRIPTION = """
20 people sign up, each in one transaction with the job that sends a welcome email; one is rolled back. The mail server
refuses half of the attempts, the worker is killed (SIGKILL) while jobs run, and one job gives up and is re-queued by SQL.
All on a PostgreSQL of its own in a temporary folder. It ends by itself, in under a minute.
"""


def main(arguments: Sequence[str]) -> int:
    """The command; answers the exit code."""
    parser = argparse.ArgumentParser(
        prog="semel demo",
        description=_DESCRIPTION,
        epilog="Exit codes: 0 all went as promised, 1 something did not. Example: semel demo --seed 7",
    )
    parser.add_argument("--json", action="store_true", help="print the figures only, as JSON")
    parser.add_argument("--seed", type=int, help="let the mail server refuse as in an earlier run")
    parser.add_argument("--keep", action="store_true", help="leave the database running, to look at it")
    options = parser.parse_args(arguments)
    return run_demo(as_json=options.json, seed=options.seed, keep=options.keep)


def run_demo(*, as_json: bool, seed: int | None = None, keep: bool = False) -> int:
    """Play it and print what happened: 0 where all went as promised, else 1, and which expectation failed."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    # Ctrl-C in the middle of a statement: the driver would tell of its rollback beside the demo's own word.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    try:
        with _ended_by_signals():
            figures, folder = _play(
                choose_screen(console, silent=as_json),
                secrets.randbelow(10_000) if seed is None else seed,
                keep,
            )
    except KeyboardInterrupt:
        print("Interrupted; everything that the demo started is gone.", file=sys.stderr)
        return _INTERRUPTED
    except PromiseBroken as error:
        if not as_json:
            raise
        print_json({"as_promised": False, "broken": [str(error)]})
        return 1
    broken = broken_promises(figures)
    if as_json:
        print_json(_plain(figures, broken))
    else:
        print_report(console, figures, broken)
        if keep:
            _say_what_is_kept(console, folder)
    return 1 if broken else 0


def _play(screen: Screen, seed: int, keep: bool) -> tuple[Figures, Path]:
    began = time.monotonic()
    with MailServer(seed) as mail, Stage(keep=keep) as stage:
        example = load_example(stage.url)
        example.create_tables()
        with example.jobs.app, open_session(stage.url, name="semel demo") as session, screen:
            story = Story(stage, example, mail, screen, session, began=began)
            sources = story.tell()
        figures = count(
            sources,
            seconds=time.monotonic() - began,
            postgresql=stage.version,
            speed=SPEED,
            lease=story.lease,
        )
    return figures, stage.folder


def _say_what_is_kept(console: Console, folder: Path) -> None:
    console.print(f"\nThe database and the workers' logs are kept in {folder}.", markup=False, soft_wrap=True)
    for purpose, command in (("look", "psql"), ("remove it", "destroy")):
        console.print(f"  {purpose}: SEMEL_HOME={folder} semel db {command}", markup=False, soft_wrap=True)


def _plain(figures: Figures, broken: list[str]) -> dict[str, object]:
    return {
        "as_promised": not broken,
        "broken": broken,
        **dataclasses.asdict(figures),
        "not_guaranteed": NOT_GUARANTEED,
    }


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end it as Ctrl-C does: everything is tidied up on the way out."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
