"""What the tests of the judge share: a description of the job in ``jobs``, and a run of it with what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from semel.replay.description import CalledFunction, Control, Description, GuardPlace, Watch
from semel.replay.results import CheckResult, CodeRun, Run, Verdict
from semel.replay.running import Options, replay
from semel.replay.staging import declare, project_of, targets_of

JOBS = Path(__file__).parent / "jobs"


def describe(function: str, *, guarded: bool = True, target: object = None, **changes: Any) -> Description:
    """A function of ``jobs`` as replay is told of it."""
    environment = {} if target is None else {"TARGET": str(target)}
    given: dict[str, Any] = {
        "name": "charge",
        "deliver": CalledFunction(function=function),
        "watch": Watch(call="provider.charge", dwell="5 ms"),
        "message": {"order_id": "{n}"},
        "look_alike": {"order_id": "{n}"},
        "changed": {"amount": 7} if guarded else None,
        "guard": GuardPlace(operation=function) if guarded else GuardPlace(),
        "control": Control() if guarded else Control(none="it has no guard"),
        "rounds": 3,
        "patience": "20 s",
    }
    environment |= changes.pop("environment", {})
    return Description(**{**given, **changes, "environment": environment})


@dataclass(frozen=True)
class Seen:
    """A run over one version of the code."""

    run: Run
    received: list[str]
    """What the provider wrote down."""

    @property
    def code(self) -> CodeRun:
        return self.run.runs[0]

    def names(self, verdict: Verdict) -> set[str]:
        return {check.name for check in self.code.checks if check.verdict is verdict}

    @property
    def holds(self) -> set[str]:
        return self.names(Verdict.HOLDS)

    @property
    def fails(self) -> set[str]:
        return self.names(Verdict.FAILS)

    @property
    def vacuous(self) -> set[str]:
        return self.names(Verdict.VACUOUS)

    @property
    def skipped(self) -> set[str]:
        return self.names(Verdict.SKIPPED)

    def check(self, name: str) -> CheckResult:
        return next(check for check in self.code.checks if check.name == name)

    def reasons(self, name: str) -> str:
        return "; ".join(self.check(name).reasons)

    def told(self) -> str:
        """Everything, for a test that failed."""
        return "\n".join(
            f"{check.name:30} {check.verdict:8} {check.evidence.effects} control={check.evidence.control} "
            f"{[each.state for each in check.evidence.records]} {check.seconds:.1f}s {check.reasons}"
            for check in self.code.checks
        )


def run_replay(folder: Path, description: Description, *, broker: str = "", **options: Any) -> Seen:
    """Replay in ``folder``, which is the working directory by then, and staging, as is the broker's address."""
    received = folder / "received"
    environment = {**description.environment, "RECEIVED": str(received)}
    description = msgspec.structs.replace(description, environment=environment)
    declare(
        project_of(folder),
        targets_of(
            description,
            {"broker": broker} if broker else {},
            guard_database=environment.get("TARGET", environment.get("SEMEL_DATABASE_URL")),
        ),
    )
    given: Mapping[str, Any] = {"directory": folder / "out", "constraint": False, "code": (("", str(JOBS)),)}
    run = replay(description, Options(**{**given, **options}))
    lines = received.read_text().splitlines() if received.exists() else []
    return Seen(run, lines)
