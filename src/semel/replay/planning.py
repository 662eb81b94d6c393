"""What a run would do and where, before it does it: the checks, and the targets that must be staging. Sends nothing."""

from __future__ import annotations

from dataclasses import dataclass

from semel.replay.checks import Check, checks_for
from semel.replay.code import laid_out
from semel.replay.description import Description
from semel.replay.folders import SHORT, own_folder
from semel.replay.ground import open_ground
from semel.replay.running import Options


@dataclass(frozen=True)
class Plan:
    """What a run would do."""

    targets: dict[str, str]
    """What it would write to, by what it is; without passwords."""
    foreign: list[str]
    """What is there of others."""
    policy: str
    checks: tuple[Check, ...]
    """Of the newest code; those that are skipped with the reason."""


def plan(description: Description, options: Options) -> Plan:
    """Look at the newest code and at the broker. Raises what a run raises, but for `NotStaging`."""
    with laid_out(options.code[-1:]) as (code,), own_folder(SHORT) as folder:
        with open_ground(description, code, folder, folder, newest=True) as ground:
            checks = checks_for(ground.description, ground.guard.policy, ground.way.victims)
            return Plan(
                ground.targets,
                [*ground.way.foreign(), *ground.guard.others()],
                ground.guard.policy.words,
                tuple(checks),
            )
