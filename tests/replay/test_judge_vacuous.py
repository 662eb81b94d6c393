"""A check that could not have failed is told apart from one that holds, each with its reason."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.replay.judging import describe, run_replay

from semel.replay.description import Control, GuardPlace, SemelJob, Watch

pytestmark = pytest.mark.timeout(600)


def test_the_watched_call_has_another_name(folder: Path, sqlite: Path) -> None:
    description = describe("guarded:charge", target=sqlite, watch=Watch(call="provider.chrage"))

    seen = run_replay(folder, description, only=("three", "killed-on-entry", "late-completion"))

    assert not seen.holds | seen.fails, seen.told()
    assert "the watched call was never hit" in seen.reasons("three-deliveries")
    assert "its delivery ended without coming to entry" in seen.reasons("killed-on-entry-parent")
    assert "nothing was killed" in seen.reasons("killed-on-entry-parent")


def test_the_job_calls_by_a_name_from_before_the_wrapper(folder: Path) -> None:
    description = describe("others:by_another_name", guarded=False, watch=Watch(call="table.charge"))

    seen = run_replay(folder, description, only=("three",))

    assert seen.vacuous == {"three-deliveries"}, seen.told()
    assert "is also held, unwrapped, by table.PAY.charge" in seen.reasons("three-deliveries")
    assert len(seen.received) == 3, "it acted three times, and nobody counted"


def test_the_broker_takes_out_the_second_delivery(folder: Path, database_url: str) -> None:
    description = describe(
        "queue_app:plain",
        guarded=False,
        deliver=SemelJob(app="queue_app:app", kind="plain", unique_key="order-{order_id}"),
        environment={"SEMEL_DATABASE_URL": database_url},
    )

    seen = run_replay(folder, description, only=("three", "two"))

    assert seen.vacuous == {"three-deliveries", "two-at-once"}, seen.told()
    for name in seen.vacuous:
        assert "the broker de-duplicated a delivery: job" in seen.reasons(name)


def test_the_control_does_not_repeat(folder: Path) -> None:
    """The environment that is said to switch the guard off does not."""
    description = describe(
        "others:done_before_the_effect",
        guarded=False,
        target=folder / "other.db",
        control=Control(environment={"NO_SUCH_SWITCH": "1"}),
    )

    seen = run_replay(folder, description, only=("three", "killed-on-return"))

    assert seen.vacuous == {"three-deliveries", "killed-on-return-parent"}, seen.told()
    assert "without the guard it did not repeat either (1 effects)" in seen.reasons("three-deliveries")


def test_there_is_no_control_and_no_reason_why(folder: Path) -> None:
    description = describe(
        "others:done_before_the_effect", guarded=False, target=folder / "other.db", control=Control()
    )

    seen = run_replay(folder, description, only=("three",))

    assert seen.vacuous == {"three-deliveries"}, seen.told()
    assert "there is no control" in seen.reasons("three-deliveries")


def test_two_that_look_alike_under_one_key_are_a_failure(folder: Path, sqlite: Path) -> None:
    """Every message has the same key, so the first delivery of all is the only one that acts."""
    description = describe(
        "broken:charge",
        target=sqlite,
        environment={"BROKEN": "key_too_wide"},
        message={"order_id": "{n}"},
    )

    seen = run_replay(folder, description, only=("look-alikes", "killed-on-entry"))

    assert seen.fails == {"look-alikes"}, seen.told()
    assert "1 of 2 operations had fewer than 1 effects" in seen.reasons("look-alikes")
    assert not seen.holds


def test_what_does_not_apply_is_skipped_with_its_reason(folder: Path) -> None:
    description = msgspec.structs.replace(
        describe("others:nothing", guarded=False, guard=GuardPlace()), look_alike=None
    )

    seen = run_replay(folder, description, only=("look-alikes", "changed", "paused", "killed-past-claim"))

    assert seen.skipped == {"look-alikes", "changed-payload", "paused-past-lease", "killed-past-claim"}
    assert seen.reasons("look-alikes") == "the description has no look_alike"
    assert seen.reasons("changed-payload") == "the description has no changed"
    assert "guard.lease is not given" in seen.reasons("paused-past-lease")
    assert not seen.run.holds, "where nothing was done, nothing was shown"
