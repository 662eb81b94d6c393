"""Reads the numbers of Sidekiq: its configuration file, and its Redis."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from semel.adapters.sidekiq.reading import SidekiqState
from semel.core.durations import to_timedelta
from semel.doctor.sidekiq import DEAD, RETRIES, InFlight, RedisNumbers, SidekiqNumbers
from semel.errors import ConfigurationError


def read_sidekiq(
    file: Path | None, state: SidekiqState | None, *, environment: str = "production", **told: Any
) -> SidekiqNumbers:
    """The numbers of a file (or Sidekiq's own where there is none) and a Redis. ``told`` is what neither says."""
    settings, unread = ({}, ()) if file is None else _settings(file, environment)
    dead = settings.get("dead_timeout_in_seconds")
    return SidekiqNumbers(
        timeout=to_timedelta(settings.get("timeout", 25), name=":timeout:"),
        max_retries=int(settings.get("max_retries", RETRIES)),
        unread=tuple(unread),
        dead_kept=DEAD if dead is None else to_timedelta(dead, name=":dead_timeout_in_seconds:"),
        redis=None if state is None else read_redis(state),
        **{name: value for name, value in told.items() if value is not None},
    )


def read_redis(state: SidekiqState) -> RedisNumbers:
    """What the Redis says, as numbers."""
    version = _version(str(state.info.get("redis_version", "")))
    policy = str(state.info.get("maxmemory_policy", "noeviction"))
    persists: bool | None = bool(state.info.get("aof_enabled"))
    if state.config is not None:
        policy = state.config.get("maxmemory-policy", policy)
        persists = state.config.get("appendonly") == "yes" or bool(state.config.get("save", "").strip())
    elif not persists:
        persists = None
    oldest = min((_version(each) for each in state.versions), default=None)
    return RedisNumbers(
        version=version,
        eviction=policy,
        persists=persists,
        sidekiq_version=oldest,
        scheduled=state.scheduled,
        farthest=None if state.farthest is None else timedelta(seconds=max(state.farthest - state.now, 0)),
        most_retries=max(state.retry_limits, default=None),
        oldest_dead=None
        if state.oldest_dead is None
        else timedelta(seconds=max(state.now - state.oldest_dead, 0)),
        in_flight=tuple(
            InFlight(
                each.job_class, timedelta(seconds=max(state.now - each.run_at, 0)), each.process, each.alive
            )
            for each in state.taken
        ),
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", text)[:3])


def _settings(file: Path, environment: str) -> tuple[dict[str, Any], list[str]]:
    """What counts in that environment, by name without colons; and the names whose values are Ruby."""
    whole = _parse(file)
    found = {_name(name): value for name, value in whole.items()}
    section = found.get(environment)
    if isinstance(section, Mapping):
        found |= {_name(name): value for name, value in section.items()}
    read = ("timeout", "max_retries", "dead_timeout_in_seconds")
    unread = [f":{name}: {found[name]}" for name in read if not _is_number(found.get(name, 0))]
    return {name: found[name] for name in read if _is_number(found.get(name))}, unread


def _parse(file: Path) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise ConfigurationError(
            "To read sidekiq.yml, PyYAML is needed.", remedy="pip install 'semel[sidekiq]'"
        ) from error
    try:
        found = yaml.safe_load(file.read_text("utf-8")) or {}
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error.strerror}.", remedy="Check --sidekiq."
        ) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigurationError(
            f"{file} is no YAML: {str(error).splitlines()[0]}.",
            remedy="Give what its Ruby (ERB) makes of it.",
        ) from error
    if not isinstance(found, Mapping):
        raise ConfigurationError(f"{file} holds no settings.", remedy="Give a sidekiq.yml.")
    return found


def _name(name: Any) -> str:
    """Ruby's symbols have a colon before their name."""
    return str(name).strip(":")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
