"""What a page starts in the background ends with the tests, also where they are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.waiting import until

from semel.embedded.postmaster import is_alive

ROOT = Path(__file__).parents[2]
TESTS = """
import subprocess, time
from tests.support.keeping import ending_with_us
with subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], start_new_session=True) as background:
    with ending_with_us(background.pid):
        print(background.pid, flush=True)
        time.sleep(600)
"""


def test_a_program_in_the_background_ends_with_tests_that_are_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TESTS], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        background = int(tests.stdout.readline())
        assert is_alive(background)
        tests.kill()
    until(lambda: not is_alive(background), "it ends")
