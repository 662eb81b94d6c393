"""Runs as an engine would make them, for the tests of what shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from semel.replay.events import Event, Point
from semel.replay.expectations import Policy, expected
from semel.replay.results import CheckResult, CodeRun, Evidence, Record, Run, Verdict

POLICY = Policy("hold", "An effect that may have happened is held: a person decides.", recorded=True)
HOSTILE = "<script>alert('x')</script> & \"quotes\" \x00\x1b[31m ü"


def events_of(operation: int = 1) -> list[Event]:
    points = [
        Point.BEGIN,
        Point.CLAIMED,
        Point.ENTRY,
        Point.RETURN,
        Point.BEGIN,
        Point.ENTRY,
        Point.RETURN,
        Point.END,
    ]
    return [
        Event(
            point=point,
            pid=4711 + place // 4,
            at=1000.0 + place * 0.0123,
            operation=operation,
            delivery=f"b0f2c1d4-{place // 4}",
            digest="9f8e7d6c5b4a" if point is Point.ENTRY else "",
        )
        for place, point in enumerate(points)
    ]


def check_of(
    name: str, verdict: Verdict, *, reasons: tuple[str, ...] = (), rounds: int = 1, **seen: Any
) -> CheckResult:
    evidence = {
        "deliveries": 2,
        "begins": 2,
        "ends": 2,
        "entries": 1,
        "returns": 1,
        "effects": [1],
        "processes": 2,
        "records": [Record(count=1, state="completed acted", claim_age=3.2, lease=60.0)],
        "control": 2,
    }
    return CheckResult(
        name=name,
        title=TITLES.get(name, f"What {name} does."),
        verdict=verdict,
        reasons=reasons,
        expected=None if verdict is Verdict.SKIPPED else expected(name, POLICY, rounds=rounds),
        evidence=Evidence() if verdict is Verdict.SKIPPED else Evidence(**(evidence | seen)),
        seconds=0.0 if verdict is Verdict.SKIPPED else 12.34,
    )


TITLES = {
    "three-in-a-row": "The same message is delivered three times, one after the other.",
    "two-at-once": "Two workers get the same message at once; both begin before either ends.",
    "killed-on-return": "The worker is killed when the effect has happened, before it can say so; the message comes again.",
    "killed-on-entry": "The worker is killed where the effect begins, before it happens; the message comes again.",
    "look-alikes": "Two messages that look alike are two operations: each has its effect.",
    "changed-payload": "The same operation comes again with another payload.",
}


def after() -> CodeRun:
    held = [Record(count=1, state="held", claim_age=65.0, lease=60.0)]
    return CodeRun(
        label="after",
        code=". (commit 1f2e3d4 2026-03-04)",
        checks=(
            check_of("three-in-a-row", Verdict.HOLDS),
            check_of(
                "two-at-once",
                Verdict.HOLDS,
                rounds=100,
                effects=[1] * 100,
                begins=200,
                ends=200,
                entries=100,
                returns=100,
                overlapping=100,
                records=[Record(count=1, state="completed acted", claim_age=0.4, lease=60.0)] * 100,
            ),
            check_of(
                "killed-on-return",
                Verdict.HOLDS,
                records=held,
                killed_at=["return"],
                exits=[-9],
                redelivered_by="broker",
            ),
            check_of("look-alikes", Verdict.HOLDS, effects=[1, 1], control=None),
            check_of("changed-payload", Verdict.SKIPPED, reasons=("The description has no `changed`.",)),
        ),
        guard={
            "constraint": "operations_scope_job_type_key_key",
            "table": "semel.operations",
            "columns": ["scope", "job_type", "key"],
            "without_the_constraint": "two-at-once went red: 38 of 40 operations had 2 effects",
            "processes": 2,
        },
    )


def before() -> CodeRun:
    return CodeRun(
        label="before",
        code="v1.4 (commit 0a1b2c3 2026-02-01)",
        checks=(
            check_of(
                "three-in-a-row",
                Verdict.FAILS,
                reasons=("1 of 1 operations had more than 1 effects (the most: 3)",),
                effects=[3],
                entries=3,
                returns=3,
                records=[],
                events=events_of(),
                logs=["INFO charge 1\nINFO charge 1\nINFO charge 1"],
            ),
            check_of(
                "two-at-once",
                Verdict.FAILS,
                rounds=100,
                reasons=("97 of 100 operations had more than 1 effects (the most: 2)",),
                effects=[1] * 3 + [2] * 97,
                begins=200,
                entries=197,
                returns=197,
                overlapping=100,
                records=[],
                events=events_of(),
            ),
            check_of(
                "killed-on-return",
                Verdict.FAILS,
                reasons=("1 of 1 operations had more than 1 effects (the most: 2)",),
                effects=[2],
                maybes=1,
                records=[],
                killed_at=["return"],
                exits=[-9],
                events=events_of(),
            ),
            check_of(
                "look-alikes",
                Verdict.VACUOUS,
                reasons=("the watched call was never hit",),
                effects=[],
                entries=0,
                returns=0,
                records=[],
                logs=["Traceback: no such queue"],
            ),
        ),
        guard={},
    )


def run_of(*runs: CodeRun, **changes: Any) -> Run:
    return Run(
        **{
            "name": "charge-order",
            "began": datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
            "took": timedelta(seconds=83.5),
            "seed": 4711,
            "policy": POLICY.words,
            "expectations": "replays/expected-charge-order-20260304T050607.000000Z.json (SHA-256 "
            + "ab12" * 16
            + ")",
            "versions": {"semel": "0.1.0", "Python": "3.11.7", "Celery": "5.7.0", "Redis": "7.0.15"},
            "runs": runs,
        }
        | changes
    )


def hostile() -> Run:
    """One whose every text comes from somebody who means no good."""
    bad = check_of(
        "two-at-once",
        Verdict.FAILS,
        reasons=(HOSTILE,),
        records=[Record(count=2, state=HOSTILE)],
        notes=[HOSTILE],
        logs=[HOSTILE],
        killed_at=[HOSTILE],
        redelivered_by=HOSTILE,
        events=[Event(point=Point.ENTRY, pid=1, at=1.0, delivery=HOSTILE, detail={HOSTILE: HOSTILE})],
    )
    run = CodeRun(label=HOSTILE, code=HOSTILE, checks=(bad,), guard={HOSTILE: {HOSTILE: HOSTILE}})
    return run_of(run, name=HOSTILE, policy=HOSTILE, expectations=HOSTILE, versions={HOSTILE: HOSTILE})
