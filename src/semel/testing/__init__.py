"""For the tests of an application that uses semel, over a real PostgreSQL; its fixtures are in ``plugin``.

Names are imported when they are first used: pytest loads the plugin, and so this package, in every run.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from semel.testing.assertions import (
        aassert_enqueued,
        aenqueued,
        arefute_enqueued,
        assert_enqueued,
        enqueued,
        refute_enqueued,
    )
    from semel.testing.databases import TestDatabases
    from semel.testing.draining import Drained, DrainIncomplete, adrain, drain
    from semel.testing.guarding import inside_transaction
    from semel.testing.inlining import InlineRecord, inline
    from semel.testing.jobs import JobRow
    from semel.testing.notes import assert_note_is_current
    from semel.testing.outcomes import AttemptFailed, AttemptOutcome, Outcome
    from semel.testing.pointing import pointed_to
    from semel.testing.replay import replay_tests
    from semel.testing.running import InlineWorker, arun_inline, run_inline

__all__ = [
    "AttemptFailed",
    "AttemptOutcome",
    "DrainIncomplete",
    "Drained",
    "InlineRecord",
    "InlineWorker",
    "JobRow",
    "Outcome",
    "TestDatabases",
    "aassert_enqueued",
    "adrain",
    "aenqueued",
    "arefute_enqueued",
    "arun_inline",
    "assert_enqueued",
    "assert_note_is_current",
    "drain",
    "enqueued",
    "inline",
    "inside_transaction",
    "pointed_to",
    "refute_enqueued",
    "replay_tests",
    "run_inline",
]

_MODULES: Final = MappingProxyType(
    {
        "assertions": (
            "aassert_enqueued",
            "aenqueued",
            "arefute_enqueued",
            "assert_enqueued",
            "enqueued",
            "refute_enqueued",
        ),
        "databases": ("TestDatabases",),
        "draining": ("DrainIncomplete", "Drained", "adrain", "drain"),
        "guarding": ("inside_transaction",),
        "inlining": ("InlineRecord", "inline"),
        "jobs": ("JobRow",),
        "notes": ("assert_note_is_current",),
        "outcomes": ("AttemptFailed", "AttemptOutcome", "Outcome"),
        "pointing": ("pointed_to",),
        "replay": ("replay_tests",),
        "running": ("InlineWorker", "arun_inline", "run_inline"),
    }
)


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
