"""A run as JSON, in a shape that stays: docs/replay.md lists it."""

from __future__ import annotations

from typing import Any

import msgspec

from semel.replay.report.wording import outcome
from semel.replay.results import Run


def as_plain(run: Run) -> dict[str, Any]:
    """The run as what JSON has: times in UTC as ISO 8601, durations in seconds."""
    plain: dict[str, Any] = msgspec.to_builtins(run)
    plain["took_seconds"] = run.took.total_seconds()
    del plain["took"]
    for shown, each in zip(plain["runs"], run.runs, strict=True):
        shown["holds"] = each.holds
    return {"holds": run.holds, "outcome": outcome(run), **plain}


def as_json(run: Run) -> bytes:
    """The same as text."""
    return msgspec.json.format(msgspec.json.encode(as_plain(run), enc_hook=str), indent=2) + b"\n"
