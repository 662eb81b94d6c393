"""What a page starts in the background ends with the tests, also where they are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
TESTS = """
import subprocess, time
from tests.support.keeping import ending_with_us
with subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], start_new_session=True) as background:
    with ending_with_us(background.pid):
        print(background.pid, flush=True)
        time.sleep(600)
"""


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_program_in_the_background_ends_with_tests_that_are_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TESTS], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        background = int(tests.stdout.readline())
        assert not is_gone(background)
        tests.kill()
    until(lambda: is_gone(background), "it ends")
