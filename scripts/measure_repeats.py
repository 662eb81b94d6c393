"""How long `semel repeats` takes over a made CSV file, and how much memory: scripts/measure_repeats.py [ROWS] [FILE].

The file is made where it is not there. A hundredth of its rows repeats an earlier reference, as often as not minutes later.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

CHILD = """
import json, resource, subprocess, sys, time
began = time.monotonic()
done = subprocess.run([sys.executable, "-m", "semel.cli", "repeats", *sys.argv[1:]], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
figures = (used.ru_maxrss / 1024, time.monotonic() - began, used.ru_utime + used.ru_stime)
print(json.dumps([done.stdout, done.stderr, *figures]))
"""
"""Between this process and the one that is measured: a child begins with its parent's peak of memory."""


def make_file(path: Path, rows: int) -> int:
    """A row every 200 ms; answers how many of them are repeats."""
    begin, repeats = datetime(2026, 1, 1, tzinfo=UTC), 0
    with path.open("w") as file:
        file.write("id,reference,amount,created_at,status\n")
        for first in range(0, rows, 1_000):
            lines = []
            for number in range(first, min(first + 1_000, rows)):
                again = number % 100 == 99
                repeats += again
                moment = begin + timedelta(milliseconds=200 * number)
                # scattered, as random keys are; the same only for one number
                key = (number - 50 if again else number) * 2_654_435_761 % 2**32
                lines.append(
                    f"{number},ord-{key:08x}-{key % 977:04},{number % 977},{moment.isoformat()},ok\n"
                )
            file.writelines(lines)
    return repeats


def measure(path: Path, reference: str, time: str, *options: str) -> tuple[str, float, tuple[float, float]]:
    """What the command printed, its peak of memory in MB, and its seconds: by the clock, and of the processor."""
    command = [sys.executable, "-c", CHILD, str(path), "-r", reference, "-t", time, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    out, err, megabytes, elapsed, processor = json.loads(done.stdout)
    assert not err, err
    return out, megabytes, (elapsed, processor)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with tempfile.TemporaryDirectory() as directory:
        path = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(directory) / "made.csv"
        if not path.exists():
            make_file(path, rows)
        out, megabytes, (elapsed, processor) = measure(path, "reference", "created_at")
        print(out.splitlines()[0])
        print(
            f"{path.stat().st_size / 1e6:.0f} MB: {elapsed:.1f} s ({processor:.1f} s of processor), {megabytes:.0f} MB"
        )


if __name__ == "__main__":
    main()
