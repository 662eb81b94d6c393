"""Sidekiq under the contract: its workers as real processes, on this machine's Ruby or in a root folder with another one."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import redis
from tests.adapters import job
from tests.adapters.rig import UNGUARDED, Rig, Victim, Worker
from tests.support.waiting import until

from semel.adapters.sidekiq import SidekiqResender

ROOT = Path(__file__).parent.parent.parent
CLASSES = {
    UNGUARDED: "UnguardedJob",
    "hold": "ChargeHoldJob",
    "lookup": "ChargeLookupJob",
    "duplicate": "ChargeDuplicateJob",
    "miss": "ChargeMissJob",
}
IN_ROOT = (
    'mkdir -p "$1/semel" && mount --bind "$0" "$1/semel" && mount --bind /tmp "$1/tmp" && '
    'mount --rbind /proc "$1/proc" && root=$1 && shift && '
    'exec chroot "$root" env -C /semel RUBYLIB=/semel/ruby/lib "$@"'
)
"""In a mount namespace of its own, which ends with the process: what it mounts is nobody else's."""


@dataclass(frozen=True)
class Ruby:
    """Where Ruby is: on this machine, or in a root folder."""

    root: Path | None = None

    def command(self, command: Sequence[str]) -> list[str]:
        """The command to run a program of its."""
        if self.root is None:
            return ["env", "-C", str(ROOT), f"RUBYLIB={ROOT / 'ruby' / 'lib'}", *command]
        return ["unshare", "--mount", "sh", "-c", IN_ROOT, str(ROOT), str(self.root), *command]

    def is_there(self) -> bool:
        if self.root is None:
            return shutil.which("sidekiq") is not None
        return os.geteuid() == 0 and self.root.is_dir()


@dataclass
class SidekiqRig(Rig):
    name: ClassVar[str] = "sidekiq"
    victims: ClassVar[tuple[Victim, ...]] = ("parent",)

    redis_url: str = ""
    ruby: Ruby = field(default_factory=Ruby)
    jobs: str = "tests/adapters/sidekiq_jobs.rb"
    _concurrency: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.redis = redis.Redis.from_url(self.redis_url, decode_responses=True)
        self._number = int(self.redis.connection_pool.connection_kwargs["db"])

    def start(self, *, concurrency: int = 1, lease: float = 60.0, **options: Any) -> Worker:
        number = len(self.workers)
        timeout = str(options.get("timeout", 20))
        environment = {
            "REDIS_URL": self.redis_url,
            "SEMEL_TEST_DATABASE": self.database,
            job.PORT: str(self.stage.port),
            job.LEASE: str(lease),
        }
        worker = self._begin(
            self.ruby.command(["sidekiq", "-r", f"./{self.jobs}", "-c", str(concurrency), "-t", timeout]),
            environment,
            str(self.directory / f"worker-{number}.log"),
            ready=lambda worker: "the worker starts" in self._log(worker),
            children=False,
        )
        self._concurrency[worker.pid] = concurrency
        return worker

    def send(self, name: str, *, how: str = "hold", amount: int = 100, **options: Any) -> Any:
        message = {
            "class": CLASSES.get(how, how),
            "args": [name, amount],
            "queue": "default",
            "retry": options.get("retry", True),
            "jid": secrets.token_hex(12),
            "created_at": options.get("created_at", time.time()),
        }
        self._push(message)
        return message

    def send_again(self, message: Any) -> None:
        self._push(message)

    def redelivers(self, victim: Victim) -> bool:
        """Free Sidekiq takes a job from Redis before it runs it."""
        return False

    def pending(self) -> int:
        """What Redis has, and each thread of a live worker that does not wait for a job: in one look."""
        with self.redis.pipeline(transaction=True) as look:
            look.llen("queue:default")
            look.zcard("schedule")
            look.zcard("retry")
            look.hkeys("test:moving")
            look.client_list()
            queued, scheduled, retried, moving, clients = look.execute()
        live = [worker for worker in self.workers if worker.process.poll() is None]
        waiting = sum("b" in each["flags"] and int(each["db"]) == self._number for each in clients)
        threads = sum(self._concurrency[worker.pid] for worker in live)
        between = len({str(worker.pid) for worker in live} & set(moving))
        return int(queued + scheduled + retried + between + max(0, threads - waiting))

    def result(self, message: Any) -> Any:
        raise NotImplementedError("Sidekiq stores no results")

    def resender(self) -> Any:
        return SidekiqResender(self.redis_url)

    def wait_stopping(self, worker: Worker) -> None:
        until(lambda: "Terminating quiet" in self._log(worker), "the worker is stopping")

    def run(self, script: str) -> None:
        """Run a script of Ruby's as a client: an application that pushes jobs."""
        environment = {
            "REDIS_URL": self.redis_url,
            "SEMEL_TEST_DATABASE": self.database,
            job.PORT: str(self.stage.port),
        }
        done = subprocess.run(
            self.ruby.command(["ruby", "-r", "sidekiq", "-r", f"./{self.jobs}", "-e", script]),
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def dead(self) -> list[dict[str, Any]]:
        """The jobs of the dead set."""
        return [json.loads(each) for each in self.redis.zrange("dead", 0, -1)]

    def close(self) -> None:
        super().close()
        self.redis.close()

    def _push(self, message: dict[str, Any]) -> None:
        with self.redis.pipeline(transaction=True) as pipeline:
            pipeline.sadd("queues", message["queue"])
            pipeline.lpush(f"queue:{message['queue']}", json.dumps({**message, "enqueued_at": time.time()}))
            pipeline.execute()
