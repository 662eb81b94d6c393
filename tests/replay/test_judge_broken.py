"""Guards that are broken on purpose: each is caught, by a check that is named here and in docs/adr/0009-replay.md."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.replay.judging import describe, run_replay

pytestmark = pytest.mark.timeout(600)

ADR = Path(__file__).parent.parent.parent / "docs" / "adr" / "0009-replay.md"


@dataclass(frozen=True)
class Broken:
    """A damage in ``jobs/broken.py``, under which policy it shows, and what has to go red."""

    damage: str
    words: str
    checks: tuple[str, ...]
    policy: str = "hold"
    acting: str = "explicit"
    because: str = ""
    """Part of a reason."""


BROKEN = (
    Broken(
        "no_constraint", "no unique constraint", ("constraint", "two-at-once"), because="more than one record"
    ),
    Broken(
        "completion_not_fenced",
        "the completion is not fenced",
        ("late-completion",),
        policy="accept_duplicate",
        because="its record was completed acted, not claimed",
    ),
    Broken("lease_ignored", "the lease's end is ignored", ("old-claim",), because="ended as claimed"),
    Broken(
        "taken_over_young",
        "a claim is taken over while it is young",
        ("young-claim",),
        because="its record was held, not claimed",
    ),
    Broken("key_too_wide", "the key is too wide", ("look-alikes",), because="fewer than 1"),
    Broken("key_too_narrow", "the key is too narrow", ("three-deliveries",), because="more than 1"),
    Broken(
        "exception_frees", "an exception frees the claim", ("exception-after-effect",), because="more than 1"
    ),
    Broken(
        "completed_first",
        "completed before the effect",
        ("killed-on-entry",),
        acting="from_start",
        because="ended as completed acted, not as held",
    ),
    Broken(
        "no_fence_after_look",
        "no fence after a look-up",
        ("late-look",),
        policy="lookup",
        acting="from_start",
        because="more than 1",
    ),
    Broken(
        "reference_changed",
        "the reference changes when a claim is taken over",
        ("killed-on-return",),
        policy="provider_key",
        because="more than 1",
    ),
    Broken(
        "repeated_completion_lost",
        "a repeated completion is taken for a loss",
        ("lost-answer",),
        because="ended as ClaimLost, not as returned",
    ),
    Broken(
        "stale_acts", "a stale claim acts whatever the policy", ("killed-on-return",), because="more than 1"
    ),
    Broken(
        "acting_not_fenced",
        "the point of no return is not fenced",
        ("paused-past-lease",),
        because="more than 1",
    ),
    Broken(
        "payload_ignored",
        "another payload passes for a repeat",
        ("changed-payload",),
        because="ended as returned, not as PayloadMismatch",
    ),
    Broken(
        "completion_frees", "the completion frees the claim", ("three-deliveries",), because="more than 1"
    ),
)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.damage)
def test_a_broken_guard_is_caught_by_the_check_that_is_named(
    broken: Broken, folder: Path, sqlite: Path
) -> None:
    if broken.damage == "no_constraint":
        take_the_constraint_away(sqlite)
    description = describe(
        "broken:charge",
        target=sqlite,
        environment={"BROKEN": broken.damage, "POLICY": broken.policy, "ACTING": broken.acting},
        message={"order_id": "{n}", "customer": "{n}"},
        look_alike={"order_id": "{n}"},
    )

    seen = run_replay(folder, description, only=broken.checks, constraint=True)

    assert {name.removesuffix("-parent") for name in seen.fails} == set(broken.checks), seen.told()
    assert any(broken.because in "; ".join(check.reasons) for check in seen.code.checks), seen.told()
    assert not seen.run.holds


def take_the_constraint_away(path: Path) -> None:
    """The table as it is, but for its constraint."""
    with sqlite3.connect(path) as connection:
        columns = connection.execute(
            "SELECT name, type, pk, dflt_value FROM pragma_table_info('semel_operations')"
        )
        parts = [
            f'"{name}" {kind}{" PRIMARY KEY" if key else ""}{f" DEFAULT ({default})" if default else ""}'
            for name, kind, key, default in columns
        ]
        connection.execute("DROP TABLE semel_operations")
        connection.execute(f"CREATE TABLE semel_operations ({', '.join(parts)})")
    connection.close()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.damage)
def test_the_decision_record_says_which_check_catches_it(broken: Broken) -> None:
    line = f"| {broken.words} | {', '.join(f'`{name}`' for name in broken.checks)} |"

    assert line in ADR.read_text("utf-8")
