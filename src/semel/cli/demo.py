"""``semel demo``: two applications on a server of its own, through a bad day."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import secrets
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from rich.console import Console

from semel.cli.demonstration.charges.act import play_charges
from semel.cli.demonstration.charges.figures import ChargeFigures
from semel.cli.demonstration.charges.promises import CHARGES_NOT_GUARANTEED, broken_charge_promises
from semel.cli.demonstration.charges.report import print_charge_report, print_promised
from semel.cli.demonstration.charges.script import make_methods
from semel.cli.demonstration.charges.shop import load_shop
from semel.cli.demonstration.example import SPEED, load_example
from semel.cli.demonstration.figures import Figures, count
from semel.cli.demonstration.mail_server import MailServer
from semel.cli.demonstration.promises import NOT_GUARANTEED, PromiseBroken, broken_promises
from semel.cli.demonstration.report import print_report
from semel.cli.demonstration.screen import choose_screen
from semel.cli.demonstration.stage import Stage
from semel.cli.demonstration.story import Story
from semel.cli.output import print_json
from semel.store.session import open_session

_INTERRUPTED: Final = 130
_WIDTH: Final = 120
"""Columns, where the output does not go to a terminal."""

_DESCRIPTION = """
Act 1, the queue: 20 people sign up, each in one transaction with the job that sends a welcome email; one is rolled back.
The mail server refuses half of the attempts, the worker is killed (SIGKILL) while jobs run, and one job gives up and is
re-queued by SQL. Act 2, the guard: a shop charges 20 orders at a payment provider; workers are killed after the claim and
after the charge, answers are lost; first without the guard, then with each policy, beside what each promised beforehand.
All on a PostgreSQL of its own in a temporary folder. It ends by itself, in less than a minute.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How it is played."""

    as_json: bool
    acts: str
    seed: int
    keep: bool

    @property
    def first(self) -> bool:
        return self.acts != "2"

    @property
    def second(self) -> bool:
        return self.acts != "1"


def main(arguments: Sequence[str]) -> int:
    """The command; answers the exit code."""
    parser = argparse.ArgumentParser(
        prog="semel demo",
        description=_DESCRIPTION,
        epilog="Exit codes: 0 all went as promised, 1 something did not. Example: semel demo --act 2",
    )
    parser.add_argument("--act", choices=("1", "2", "all"), default="all", help="only one of the acts")
    parser.add_argument("--json", action="store_true", help="print the figures only, as JSON")
    parser.add_argument("--seed", type=int, help="let the mail server refuse as in an earlier run")
    parser.add_argument("--keep", action="store_true", help="leave the database running, to look at it")
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(10_000) if given.seed is None else given.seed
    return run_demo(Options(given.json, given.act, seed, given.keep))


def run_demo(options: Options) -> int:
    """Play it and print what happened: 0 where all went as promised, else 1, and which expectation failed."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    # Ctrl-C in the middle of a statement: the driver would tell of its rollback beside the demo's own word.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    try:
        with _ended_by_signals():
            shown = _play(console, options)
    except KeyboardInterrupt:
        print("Interrupted; everything that the demo started is gone.", file=sys.stderr)
        return _INTERRUPTED
    except PromiseBroken as error:
        if not options.as_json:
            raise
        print_json({"as_promised": False, "broken": [str(error)]})
        return 1
    if options.as_json:
        print_json(shown)
    return 0 if shown["as_promised"] else 1


def _play(console: Console, options: Options) -> dict[str, Any]:
    """Both acts on one stage; each is reported when it has ended. Answers the figures, as JSON has them."""
    broken: list[str] = []
    shown: dict[str, Any] = {}
    with ExitStack() as opened:
        mail = opened.enter_context(MailServer(options.seed)) if options.first else None
        stage = opened.enter_context(Stage(keep=options.keep))
        if mail is not None:
            figures = _play_sign_ups(console, options, stage, mail)
            broken += broken_promises(figures)
            shown |= dataclasses.asdict(figures) | {"not_guaranteed": NOT_GUARANTEED}
            if not options.as_json:
                print_report(console, figures, broken)
        if options.second:
            charges, failed = _play_charges(console, options, stage)
            broken += failed
            shown["charges"] = dataclasses.asdict(charges) | {"not_guaranteed": CHARGES_NOT_GUARANTEED}
    if options.keep and not options.as_json:
        _say_what_is_kept(console, stage.folder)
    return {"as_promised": not broken, "broken": broken, **shown}


def _play_sign_ups(console: Console, options: Options, stage: Stage, mail: MailServer) -> Figures:
    began = time.monotonic()
    example = load_example(stage.url)
    example.create_tables()
    screen = choose_screen(console, silent=options.as_json)
    with example.jobs.app, open_session(stage.url, name="semel demo") as session, screen:
        story = Story(stage, example, mail, screen, session, began=began)
        sources = story.tell()
    return count(
        sources,
        seconds=time.monotonic() - began,
        postgresql=stage.version,
        speed=SPEED,
        lease=story.lease,
    )


def _play_charges(console: Console, options: Options, stage: Stage) -> tuple[ChargeFigures, list[str]]:
    shop = load_shop(stage.url)
    methods = make_methods(shop.policies)
    if not options.as_json:
        print_promised(console, methods)
    figures = play_charges(stage, shop, methods, choose_screen(console, silent=options.as_json))
    broken = broken_charge_promises(figures, methods)
    if not options.as_json:
        print_charge_report(console, figures, broken)
    return figures, broken


def _say_what_is_kept(console: Console, folder: Path) -> None:
    console.print(f"\nThe database and the workers' logs are kept in {folder}.", markup=False, soft_wrap=True)
    for purpose, command in (("look", "psql"), ("remove it", "destroy")):
        console.print(f"  {purpose}: SEMEL_HOME={folder} semel db {command}", markup=False, soft_wrap=True)


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
