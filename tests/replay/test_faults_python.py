"""What the wrapper does inside a Python worker: it stops where it is told to, and tells calls apart by their arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.waiting import until

from semel.replay.control import open_room
from semel.replay.events import Do, Point
from semel.replay.faults import PYTHON
from semel.replay.journal import read_journal
from semel.replay.processes import state_of

STOPPING = """
import sys, threading, time
from semel_faults import reporting

class Keeper:
    def __init__(self, *args, **options): pass
    def kill(self): print(time.monotonic(), flush=True)
    def wait(self): pass

reporting.subprocess.Popen = Keeper  # what is done first by who goes on
reporter = reporting.Reporter({"socket": sys.argv[1], "journal": sys.argv[2]})
thread = threading.Thread(target=lambda: [reporter.ask("entry", "a delivery") for _ in range(5)])
thread.start()
thread.join()
"""
ASKING = """
import sys
from semel_faults import reporting

reporting.Reporter({"socket": sys.argv[1], "journal": sys.argv[2]}).ask("entry", "a delivery")
"""
DIGEST = """
import dataclasses, functools
from semel_faults.digests import digest_of

class Plain:
    def __init__(self, **given): self.__dict__ |= given

@dataclasses.dataclass
class Order:
    number: int
    of: object

class Refusing:
    def __repr__(self): raise RuntimeError

around = []
around.append(around)
print(digest_of({args}, {{}}))
"""


def run(code: str, *words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(PYTHON), **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """However the block ends, stopped or not."""
    try:
        yield
    finally:
        process.kill()


def test_nothing_runs_past_a_stop(tmp_path: Path) -> None:
    """Also where another thread than the main one is told to."""
    with open_room(tmp_path / "room") as room:
        room.expect(1)
        room.tell(1, Point.ENTRY, Do.STOP)
        with run(STOPPING, str(tmp_path / "room"), str(tmp_path / "journal")) as worker, ended(worker):
            assert worker.stdout is not None
            for count in range(1, 6):
                room.wait_for(1, Point.ENTRY, count, 30)
                until(lambda: state_of(worker.pid) == "T", "it is stopped")
                if count < 5:
                    room.tell(1, Point.ENTRY, Do.STOP)
                woken = time.monotonic()
                os.kill(worker.pid, signal.SIGCONT)
                assert float(worker.stdout.readline()) >= woken


def test_a_line_that_a_kill_cut_spoils_no_other(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text('{"point": "begin", "pi')
    with open_room(tmp_path / "room") as room:
        room.expect(1)
        with run(ASKING, str(tmp_path / "room"), str(journal)) as worker, ended(worker):
            assert worker.wait(30) == 0
    assert [(each.point, each.pid) for each in read_journal(journal)] == [(Point.ENTRY, worker.pid)]


@pytest.mark.parametrize(
    "args",
    [
        "(1, 'a', b'b', None, 1.5)",
        "(Plain(order=1, of=Plain()),)",
        "(object(), lambda: 1, functools.partial(print, object()))",
        "({'a', 'b', 'c', 'd'}, frozenset('abcdef'))",
        "({'a': object(), 'b': {'c', 'd', 'e'}},)",
        "(Order(1, object()),)",
        "(around, Refusing())",
    ],
)
def test_the_same_arguments_have_one_digest_in_every_process(args: str) -> None:
    assert len({digest(args, seed) for seed in ("1", "2", "3")}) == 1


@pytest.mark.parametrize(
    ("args", "others"),
    [
        ("(1,)", "(2,)"),
        ("(1,)", "('1',)"),
        ("(Plain(key='a'),)", "(Plain(key='b'),)"),
        ("(Order(1, 2),)", "(Order(1, 3),)"),
        ("({'a': 1},)", "({'a': 2},)"),
    ],
)
def test_other_arguments_have_another(args: str, others: str) -> None:
    assert digest(args, "1") != digest(others, "1")


def digest(args: str, seed: str) -> str:
    with run(DIGEST.format(args=args), PYTHONHASHSEED=seed) as process:
        assert process.stdout is not None
        return process.stdout.read().strip()
