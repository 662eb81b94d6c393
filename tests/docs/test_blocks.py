"""Every code block of README and docs runs, page by page, against a real database."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.adapters import brokers
from tests.adapters.sqs_rig import server_of
from tests.docs.pages import PAGES, ROOT, Block, matches, read_blocks
from tests.support.keeping import ending_with_us, free_port, run_directory
from tests.support.waiting import until

from semel.embedded import EmbeddedServer

WITH_CODE = [page for page in PAGES if any(block.runs for block in read_blocks(page))]


class Scene:
    """Where one page's blocks run: a folder, a database, a Python session, commands in the background."""

    def __init__(self, folder: Path, environment: dict[str, str], url: str, ended: ExitStack) -> None:
        self.folder = folder
        self.environment = environment
        self.url = url
        self.ended = ended
        self.printed = ""
        self.left: Path | None = None
        """Where a page's one terminal leaves its variables."""
        self._sessions: dict[str, subprocess.Popen[str]] = {}

    def run(self, block: Block) -> None:
        if "wait" in block.said:
            self.wait(block)
        elif "output" in block.said:
            shown = f"shown:\n{block.text}\nprinted:\n{self.printed}"
            assert matches(block.text, self.printed), f"{block.place} is not what is printed; {shown}"
        elif "file" in block.said:
            path = self.folder / block.said["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
        elif block.runs:
            getattr(self, block.language)(block)

    def python(self, block: Block) -> None:
        self._in_session(block, [sys.executable, str(ROOT / "tests/docs/session.py")])

    def ruby(self, block: Block) -> None:
        self._in_session(block, ["ruby", str(ROOT / "tests/docs/session.rb")])

    def _in_session(self, block: Block, command: list[str]) -> None:
        """Run it where the page's blocks of that language ran before."""
        session = self._sessions.get(block.language)
        if session is None:
            session = self._sessions[block.language] = self.ended.enter_context(self._process(command))
        assert session.stdin is not None
        assert session.stdout is not None
        session.stdin.write(json.dumps({"text": block.text, "place": block.place}) + "\n")
        session.stdin.flush()
        answer = json.loads(session.stdout.readline())
        self.printed = answer["printed"]
        name, trace = answer["raised"] or (None, "")
        assert name == block.said.get("raises"), f"{block.place}: {trace or 'nothing was raised'}"
        if name is not None:
            self.printed += trace.splitlines()[-1]

    def shell(self, block: Block) -> None:
        bash = ("bash", "-euo", "pipefail", "-c")
        if "background" in block.said:
            self.ended.enter_context(self._process([*bash, block.text]))
            if variable := block.said["background"]:
                until(lambda: _answers(self.environment[variable]), f"what {block.place} starts answers")
            return
        command = [*bash, block.text]
        if self.left is not None:
            command[-1] = f"trap 'env -0 > {self.left}' EXIT\n{block.text}"
        done = self._ended(command, block)
        if self.left is not None:
            self.environment = dict(
                line.split("=", 1) for line in self.left.read_text().rstrip("\0").split("\0")
            )
            self.folder = Path(self.environment["PWD"])
        self.printed = done.stdout if "fails" not in block.said else done.stdout + done.stderr
        expected = int(block.said.get("fails", "0"))
        assert done.returncode == expected, (
            f"{block.place} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )

    def _ended(self, command: list[str], block: Block) -> subprocess.CompletedProcess[str]:
        """What a command came to; within a bound that holds on a machine several times slower (a replay: 35 s)."""
        try:
            return subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            printed = b"".join(text for text in (late.stdout, late.stderr) if text).decode(errors="replace")
            pytest.fail(f"{block.place} did not end in {late.timeout:g} s, and had printed: {printed}")

    def sql(self, block: Block) -> None:
        with psycopg.connect(self.url, autocommit=True, options="-c search_path=semel,public") as connection:
            cursor = connection.execute(block.text.encode())
            while cursor.nextset():
                pass
            rows = cursor.fetchall() if cursor.description else []
        self.printed = "\n".join(" | ".join(str(value) for value in row) for row in rows)

    def wait(self, block: Block) -> None:
        deadline = time.monotonic() + 60
        with psycopg.connect(self.url, autocommit=True, options="-c search_path=semel,public") as connection:
            while True:
                row = connection.execute(block.said["wait"].encode()).fetchone()
                if row is not None and row[0]:
                    return
                assert time.monotonic() < deadline, f"{block.place}: {block.said['wait']} never came true"
                time.sleep(0.05)

    @contextmanager
    def _process(self, command: list[str]) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with ending_with_us(process.pid):
            yield from self._until_ended(process, command)

    def _until_ended(
        self, process: subprocess.Popen[str], command: list[str]
    ) -> Iterator[subprocess.Popen[str]]:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.communicate(timeout=60 if "semel" in command[-1] else 10)
            except subprocess.TimeoutExpired:  # TaskIQ's worker does not end, when it gets the signal too
                if "semel" in command[-1]:
                    raise
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate(timeout=60)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except HTTPError:
        return True
    except OSError:
        return False


def _ruby(url: str, redis_url: str) -> dict[str, str]:
    """What blocks of Ruby find: the gem, a Redis for Sidekiq, and the database as Rails has it."""
    if shutil.which("sidekiq") is None:
        if os.environ.get("CI"):
            pytest.fail("Sidekiq is not installed: apt-get install ruby-sidekiq")
        pytest.skip("Sidekiq is not installed (Debian: apt-get install ruby-sidekiq)")
    return {"RUBYLIB": str(ROOT / "ruby/lib"), "REDIS_URL": redis_url, "DATABASE_URL": _as_rails_has_it(url)}


def _new_redis(request: pytest.FixtureRequest) -> str:
    return brokers.shared_redis(*run_directory(request)).new_url()


def _as_rails_has_it(url: str) -> str:
    """With the socket's folder as the host: Rails reads none among the options."""
    parts = conninfo_to_dict(url)
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{parts['user']}@{quote(str(parts['host']), safe='')}{port}/{parts['dbname']}"


@contextmanager
def scene(page: Path, blocks: list[Block], folder: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SEMEL_", "DJANGO_", "PG"))
    }
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
        "SEMEL_HOME": str(folder / ".semel"),
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "examples")]),
        "COLUMNS": "120",
        "SEMEL_WHO": "you@example.com",
    }
    if any(block.said.get("page") == "redis" for block in blocks):
        environment["REDIS_URL"] = _new_redis(request)
    if any(block.said.get("page") == "sqs" for block in blocks):
        environment |= server_of("ministack", request).environment
    with ExitStack() as ended:
        if any(block.said.get("page") == "embedded" for block in blocks):
            server = EmbeddedServer(folder / ".semel" / "postgres")
            ended.callback(server.destroy)
            url = server.url()
        else:
            url = request.getfixturevalue("database_url")
            environment["SEMEL_DATABASE_URL"] = url
        if any(block.language == "ruby" and block.runs for block in blocks):
            environment |= _ruby(url, _new_redis(request))
        place = Scene(folder, environment, url, ended)
        if any(block.said.get("page") == "terminal" for block in blocks):
            place.left = folder / ".terminal"
            place.environment["BANK_URL"] = f"http://127.0.0.1:{free_port()}"
            (folder / "examples").symlink_to(ROOT / "examples")
        yield place


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="semel-docs-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page: Path, folder: Path, request: Any) -> None:
    blocks = read_blocks(page)
    with scene(page, blocks, folder, request) as place:
        for block in blocks:
            place.run(block)
