"""What Sidekiq's Redis says: read by its own commands, and changed by none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from semel.adapters.sidekiq.resender import connect_redis
from semel.errors import BrokerUnreachable

_MOST: Final = 1000
"""Jobs of the retry set that are looked at."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A job that a process took and has not ended."""

    job_class: str
    run_at: float
    process: str
    alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SidekiqState:
    """What was read, times as seconds since 1970 on Redis' clock."""

    now: float
    info: Mapping[str, Any]
    config: Mapping[str, str] | None
    """None where the server does not show it."""
    scheduled: int
    farthest: float | None
    oldest_dead: float | None
    retry_limits: tuple[int, ...]
    versions: tuple[str, ...]
    """That the processes say of themselves."""
    taken: tuple[Taken, ...]


def read_state(url: str, *, namespace: str | None = None) -> SidekiqState:
    """Ask the Redis. Raises BrokerUnreachable, and ConfigurationError for what is no URL of one."""
    redis = connect_redis(url)
    from redis.exceptions import RedisError

    try:
        return _read(redis, "" if namespace is None else f"{namespace}:")
    except RedisError as error:
        raise BrokerUnreachable(
            f"Sidekiq's Redis could not be asked: {error}.", remedy="Check the URL, and that the server runs."
        ) from error
    finally:
        redis.close()


def _read(redis: Any, prefix: str) -> SidekiqState:
    seconds, microseconds = redis.time()
    farthest = redis.zrange(f"{prefix}schedule", -1, -1, withscores=True)
    dead = redis.zrange(f"{prefix}dead", 0, 0, withscores=True)
    processes = {_text(each) for each in redis.smembers(f"{prefix}processes")}
    infos = {each: _json(redis.hget(f"{prefix}{each}", "info")) for each in sorted(processes)}
    return SidekiqState(
        now=seconds + microseconds / 1_000_000,
        info=redis.info(),
        config=_config(redis),
        scheduled=int(redis.zcard(f"{prefix}schedule")),
        farthest=farthest[0][1] if farthest else None,
        oldest_dead=dead[0][1] if dead else None,
        retry_limits=tuple(_limits(redis.zrange(f"{prefix}retry", 0, _MOST - 1))),
        versions=tuple(str(info["version"]) for info in infos.values() if info and info.get("version")),
        taken=tuple(_taken(redis, prefix, {each for each, info in infos.items() if info})),
    )


def _config(redis: Any) -> dict[str, str] | None:
    from redis.exceptions import ResponseError

    try:
        found = {
            **redis.config_get("maxmemory-policy"),
            **redis.config_get("appendonly"),
            **redis.config_get("save"),
        }
    except ResponseError:  # managed servers rename or refuse it
        return None
    return {_text(name): _text(value) for name, value in found.items()}


def _limits(jobs: list[Any]) -> Iterator[int]:
    for job in jobs:
        limit = (_json(job) or {}).get("retry")
        if isinstance(limit, int) and not isinstance(limit, bool):
            yield limit


def _taken(redis: Any, prefix: str, alive: set[str]) -> Iterator[Taken]:
    """By the hashes of the processes: ``…:work`` since Sidekiq 7, ``…:workers`` before."""
    for ending in ("work", "workers"):
        for key in sorted(_text(each) for each in redis.scan_iter(match=f"{prefix}*:{ending}", count=500)):
            process = key.removeprefix(prefix).removesuffix(f":{ending}")
            if redis.type(key) not in (b"hash", "hash"):
                continue
            for value in redis.hvals(key):
                work = _json(value) or {}
                payload = work.get("payload")
                job = _json(payload) if isinstance(payload, str) else payload
                name = str((job or {}).get("class", "a job"))
                yield Taken(name, float(work.get("run_at") or 0), process, process in alive)


def _json(value: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(value) if value is not None else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
