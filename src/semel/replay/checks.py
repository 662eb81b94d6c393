"""The checks by name, in their order, and which of them apply to a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from semel.replay.description import Description
from semel.replay.expectations import Policy
from semel.replay.processes import Victim


@dataclass(frozen=True)
class Check:
    """One thing that is tried."""

    name: str
    title: str
    """What is done, in words."""
    scenario: str
    victim: Victim | None = None
    skipped: str | None = None
    """Why it does not apply."""


_PLAIN: Final = (
    ("three-deliveries", "The same message is delivered three times, one after another."),
    ("two-at-once", "Two workers get the same message at the same moment; both begin before either ends."),
    ("look-alikes", "Two messages that look alike are two operations."),
    ("changed-payload", "The same operation comes again with another payload."),
    ("young-claim", "A second delivery comes while the first is inside the effect, and alive."),
    ("old-claim", "A worker died inside the job and its lease is over; then three deliveries come."),
)
_KILLS: Final = (
    ("killed-on-entry", "Its {victim} is killed on entry to the effect; then the message comes again."),
    ("killed-on-return", "Its {victim} is killed right after the effect; then the message comes again."),
)
_GUARDED: Final = (
    ("killed-past-claim", "Its worker is killed past the commit of the claim; then the message comes again."),
    ("killed-past-completion", "Its worker is killed past the completion, before the broker heard of it."),
)
_ODD: Final = (
    ("exception-after-effect", "The job raises right after the effect; then the message comes again."),
    ("paused-past-lease", "Its worker sleeps past the lease; another one decides; then it wakes up."),
    (
        "late-completion",
        "Its worker sleeps past the lease before its completion; another one decides; then it wakes up.",
    ),
    (
        "late-look",
        "Its worker died; who looks sleeps past the lease with the answer; another one decides; it wakes up.",
    ),
    ("lost-connection", "The connection to the record's database is lost before the completion's commit."),
    ("lost-answer", "The answer to the completion's commit is lost."),
    (
        "redo",
        "Its worker is killed on entry to the effect; it is held; a person says that it is to be redone.",
    ),
)
_BETWEEN: Final = (
    "killed-past-claim",
    "late-completion",
    "late-look",
    "lost-connection",
    "lost-answer",
    "redo",
)
"""Checks that need to know what is between the claim's commit and the completion's."""
_WHO: Final = MappingProxyType(
    {"child": "process", "parent": "parent process", "group": "whole process group"}
)


def checks_for(description: Description, policy: Policy, victims: tuple[Victim, ...]) -> list[Check]:
    """All of them in order, those that do not apply with the reason."""
    found = [Check(name, title, name, skipped=_refused(name, description, policy)) for name, title in _PLAIN]
    for name, title in _KILLS:
        found += [
            Check(f"{name}-{victim}", title.format(victim=_WHO[victim]), name, victim) for victim in victims
        ]
    last = victims[-1]
    for name, title in _GUARDED:
        found.append(Check(name, title, name, last, _refused(name, description, policy)))
    found += [Check(name, title, name, skipped=_refused(name, description, policy)) for name, title in _ODD]
    return found


def _refused(name: str, description: Description, policy: Policy) -> str | None:
    return next(_reasons(name, description, policy), None)


def _reasons(name: str, description: Description, policy: Policy) -> Iterator[str]:
    proxied = description.watch.http is not None
    if name == "look-alikes" and description.look_alike is None:
        yield "the description has no look_alike"
    if name == "changed-payload" and description.changed is None:
        yield "the description has no changed"
    if name in _BETWEEN and not policy.recorded:
        yield "it is about the commits of semel's guard in Python, and there is none"
    if name in _BETWEEN and policy.name == "row":
        yield "a Row() commits claim, effect and completion as one"
    if name == "late-look" and policy.name != "lookup":
        yield "the policy does not look"
    if name == "redo" and policy.name != "hold":
        yield "the policy does not hold what died in the effect"
    if name == "redo" and not policy.decidable:
        yield "the guard's engine is for asyncio alone: a person decides over another connection"
    if name == "exception-after-effect" and proxied:
        yield "the effect is a request: nothing can be raised in the job after it"
    if name == "paused-past-lease" and proxied:
        yield "the effect is a request: its sender cannot be stopped on entry"
    if name == "paused-past-lease" and not policy.recorded and description.guard.lease is None:
        yield "guard.lease is not given: nobody knows when another takes over"
