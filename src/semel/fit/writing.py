"""The lines to write for a job that fits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

from semel.core.durations import describe, to_timedelta

_LEAST = timedelta(seconds=60)


def write_lines(answers: Mapping[str, str], policy: str) -> tuple[str, ...]:
    """Two lines: the guard over the database, and the decorator."""
    late = to_timedelta(answers["longest_redelivery"], name="longest_redelivery")
    run = to_timedelta(answers["longest_run"], name="longest_run")
    target = {
        "postgresql": '"postgresql://…"',
        "mysql": '"mysql://…"',
        "sqlite": '"operations.db"',
    }[answers["database"]]
    secret = ", secret=semel.Secret(…)" if answers.get("personal") == "yes" else ""
    options = [f'key="…", effect={_effect(answers, policy)}']
    if policy != "row":
        options.append(f'acting="explicit", lease="{describe(_lease(run))}", longest_run="{describe(run)}"')
    if late >= timedelta(days=89):
        days = -(-late // timedelta(days=1)) + 1
        options.append(f'keep="{days} days"')
    name = json.dumps(answers.get("job", "…"), ensure_ascii=False)
    return (f"once = semel.Once({target}{secret})", f"@once.operation({name}, {', '.join(options)})")


def _effect(answers: Mapping[str, str], policy: str) -> str:
    lookup = f'semel.Lookup(find, settle="{answers.get("lookup_settle", "")}")'
    match policy:
        case "row":
            return "semel.Row()"
        case "provider_key":
            then = f", then={lookup}" if answers.get("lookup") == "yes" else ""
            return f'semel.ProviderKey(valid_for="{answers["provider_window"]}"{then})'
        case "lookup":
            return lookup
        case "accept_duplicate":
            return "semel.AcceptDuplicate(extra=1)"
        case "accept_miss":
            return "semel.AcceptMiss()"
    return "semel.Hold()"


def _lease(run: timedelta) -> timedelta:
    """Three times the longest run: room for a slow database and a pause; a minute at least."""
    return max(_LEAST, timedelta(seconds=-(-run.total_seconds() * 3 // 1)))
