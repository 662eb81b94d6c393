"""Records docs/transcript.txt: a worker that dies with SIGKILL, and the one that takes over, on a server of its own.

    .venv/bin/python scripts/record_transcript.py            write docs/transcript.txt
    .venv/bin/python scripts/record_transcript.py --print    print instead

What differs from run to run (times, process ids, ports) is replaced, so that a recording changes only when semel does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from semel.embedded import EmbeddedServer
from semel.store.migrate import migrate_database

ROOT = Path(__file__).parent.parent
TRANSCRIPT = ROOT / "docs" / "transcript.txt"
STEPS = (
    ("A transaction that fails takes its job with it.", "python shop.py 41 --fail"),
    ("One that commits leaves one.", "python shop.py 42"),
    ("The worker is killed with SIGKILL, right after it has sent the receipt.", "semel worker shop:app"),
    (
        "The payment was not committed; the claim still holds.",
        'semel db psql -qAt -c "SELECT count(*) FROM payments"',
    ),
    ("", 'semel db psql -qAt -c "SELECT status, attempts, crashes FROM jobs"'),
    (
        "The lease (2 s here) runs out, and the next worker takes over.",
        "sleep 2.5; semel worker shop:app --drain",
    ),
    (
        "Paid once: the row and the end of the job were one commit.",
        'semel db psql -qAt -c "SELECT count(*) FROM payments"',
    ),
    (
        "The receipt went out twice: no queue can take back what happened outside the database.",
        "cat outbox.txt",
    ),
)
REPLACED = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+Z"), "12:00:00.000Z"),
    (re.compile(r"seconds=[\d.]+"), "seconds=0.010"),
    (re.compile(r"child \d+"), "child 101"),
)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="semel-transcript-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(ROOT / "scripts" / "transcript" / "shop.py", folder)
        server = EmbeddedServer(folder / ".semel" / "postgres")
        try:
            migrate_database(server.start(background=True))
            text = record(folder, server.url())
        finally:
            server.destroy()
    if "--print" in sys.argv:
        print(text, end="")
    else:
        TRANSCRIPT.write_text(text, "utf-8")
    return 0


def record(folder: Path, url: str) -> str:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SEMEL_HOME": str(folder / ".semel"),
        "SEMEL_DATABASE_URL": url,
        "COLUMNS": "100",
        "TERM": "dumb",
    }
    lines = []
    for remark, command in STEPS:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        if remark:
            lines.append(f"# {remark}")
        lines.append(f"$ {command}")
        lines += [replace(line.rstrip()) for line in done.stdout.splitlines() if line.strip()]
        if done.returncode:
            lines.append(f"(exit code {done.returncode if done.returncode > 0 else 128 - done.returncode})")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def replace(line: str) -> str:
    for pattern, stand_in in REPLACED:
        line = pattern.sub(stand_in, line)
    return line


if __name__ == "__main__":
    sys.exit(main())
