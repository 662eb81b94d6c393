"""Reads a guarded function's declaration and its records, where the guarded function is."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from datetime import timedelta
from functools import cached_property
from typing import Any

from semel.core.durations import to_timedelta
from semel.core.effects import AcceptDuplicate, promise
from semel.core.operation_report import OperationFilter
from semel.core.operations import State
from semel.guard.behind import guarded_behind
from semel.guard.declaration import Arguments
from semel.guard.delivery import lookup_of
from semel.guard.guarded import Guarded
from semel.operate import held
from semel.replay.inside.lines import Answers, load, serve
from semel.store.guard_replay import end_lease
from semel.store.guard_views import list_operations
from semel.store.own_connections import open_own
from semel.store.statement import Operation

_WHO = "semel replay"
_WHY = "its worker was killed on entry to the effect, by this replay"


class GuardedCode:
    """One guarded function of the user's."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _guarded(self) -> Guarded[..., Any]:
        """Loaded at the first question, whose answer can be why not."""
        return find_guarded(load(self._name), self._name)

    def describe(self, told: dict[str, Any]) -> dict[str, Any]:
        """The declaration, for the expectations and the report."""
        declaration, place = self._guarded.declaration, self._guarded.place
        effect = declaration.effect
        promised = promise(effect)
        return {
            "job_type": declaration.job_type,
            "policy": effect.name,
            "words": (
                f"{type(effect).__name__}: never more than {promised.never_more_than}; completed means "
                f"{promised.completed_means}; a stale claim is {promised.stale}."
            ),
            "extra": effect.extra if isinstance(effect, AcceptDuplicate) else 0,
            "explicit": declaration.acting == "explicit",
            "lease": declaration.lease / timedelta(seconds=1),
            "dialect": place.dialect,
            "target": place.target if isinstance(place.target, str) else None,
            "schema": place.schema,
            "is_sync": place.is_sync,
        }

    def record(self, told: dict[str, Any]) -> dict[str, Any]:
        """The operation's record: how many there are, and the newest one's state."""
        wanted = OperationFilter(job_type=self._guarded.declaration.job_type, key=self._digest(told))
        page = self._ask(list_operations(wanted))
        if not page.operations:
            return {"count": 0, "state": "none"}
        newest = page.operations[0]
        return {
            "count": len(page.operations),
            "state": " ".join(filter(None, (newest.state, newest.outcome))),
            "claim_age": (page.as_of - newest.claimed_at).total_seconds(),
            "lease": (newest.lease_until - newest.claimed_at).total_seconds(),
            "error": newest.last_error,
        }

    def others(self, told: dict[str, Any]) -> list[str]:
        """Claims that are alive now, when no worker of this replay has begun. Those of blinded guards have no label."""
        page = self._ask(list_operations(OperationFilter(states=frozenset({State.CLAIMED})), limit=1000))
        alive = Counter(
            each.job_type
            for each in page.operations
            if each.label is not None and each.lease_until > page.as_of
        )
        return [f"{number} operations of {name} are claimed" for name, number in sorted(alive.items())]

    def redo(self, told: dict[str, Any]) -> bool:
        """A person's decision, on what the record shows now; whether the message comes again by itself."""
        place = self._guarded.place
        wanted = OperationFilter(job_type=self._guarded.declaration.job_type, key=self._digest(told))
        shown = self._ask(list_operations(wanted)).operations[0]
        own = open_own(place.target, schema=place.schema)
        try:
            with own.session() as session:
                resolved = held.redo(session, shown.id, shown.claim, _WHO, _WHY, seen_revision=shown.revision)
        finally:
            own.close()
        return bool(resolved.sent)

    def end_lease(self, told: dict[str, Any]) -> None:
        """Let the operation's claim be an old one, past a look-up's settle time."""
        declaration = self._guarded.declaration
        lookup = lookup_of(declaration)
        settle = timedelta(0) if lookup is None else to_timedelta(lookup.settle, name="settle")
        before = settle + timedelta(milliseconds=1)
        self._ask(end_lease(declaration.job_type, self._digest(told), before.total_seconds()))

    def _digest(self, told: dict[str, Any]) -> str:
        arguments = Arguments(self._guarded.signature, (), told["message"])
        return self._guarded.declaration.compute_key(arguments).digest

    def _ask(self, operation: Operation[Any]) -> Any:
        place = self._guarded.place
        if place.is_sync:
            return place.ask(operation)
        return asyncio.run(place.ask_async(operation))


def find_guarded(found: object, name: str) -> Guarded[..., Any]:
    """The one guarded function that this is, or leads to. Raises LookupError."""
    behind = guarded_behind(found)
    if len(behind) == 1:
        return behind[0]
    if behind:
        types = ", ".join(sorted(each.declaration.job_type for each in behind))
        raise LookupError(f"{name} calls {len(behind)} operations: {types}. Name one of their functions.")
    raise LookupError(f"{name} is not guarded by semel: nothing there was made by once.operation(…)")


def main() -> None:
    def make() -> Answers:
        code = GuardedCode(sys.argv[1])
        return {each: getattr(code, each) for each in ("describe", "record", "others", "redo", "end_lease")}

    serve(make)


if __name__ == "__main__":
    main()
