"""The job of ``guarded``, under a guard that BROKEN has damaged: from outside, before the job is imported."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import semel.guard.declaration as declaration
import semel.guard.delivery as delivery
import semel.guard.guarded as guarded
import semel.sql as sql
import semel.store.guard_begin as guard_begin
import semel.store.guard_end as guard_end
from semel.core import operations
from semel.core.effects import Answer
from semel.core.keys import compute_key
from semel.core.operations import Move, Record, Reply, State
from semel.guard.flow import drive
from semel.store.guard_request import Begun, Lost, record_of
from semel.store.statement import Operation, Statement

OWN = r"AND token = CAST\(:token AS TEXT\)"
YOUNG = r"AND lease_until > \(\(julianday\('now'\) - 2440587.5\) \* 86400.0\)"
OLD = r"AND lease_until <= \(\(julianday\('now'\) - 2440587.5\) \* 86400.0\)"


def change_sql(files: tuple[str, ...], *patterns: str) -> None:
    """These statements without what matches."""
    read = sql.read

    def read_changed(path: str) -> str:
        text = read(path)
        if path.rpartition("/")[2].removesuffix(".sql") in files:
            for pattern in patterns:
                text, found = re.subn(pattern, "", text, flags=re.DOTALL)
                assert found or "take_over" in path, f"{path} has no {pattern}"
        return text

    sql.read = read_changed


def no_constraint() -> None:
    """The table has none (the test made it so), so the claim is a plain insert."""
    change_sql(("insert",), r"ON CONFLICT \(.*?\) DO NOTHING")


def completion_not_fenced() -> None:
    change_sql(("complete",), OWN, YOUNG)


def lease_ignored() -> None:
    """No claim ever gets old."""
    Record.stale = property(lambda self: False)


def taken_over_young() -> None:
    Record.stale = property(lambda self: self.state is State.CLAIMED)
    change_sql(("take_over", "take_over_to_look"), OLD)


def key_too_wide() -> None:
    """The customer instead of the order."""
    declaration.Declaration._key = lambda self, arguments, secret: compute_key(
        arguments.pick("customer", "the key"), secret=secret, label=self.label
    )


def key_too_narrow() -> None:
    """Every delivery has one of its own."""
    declaration.Declaration._key = lambda self, arguments, secret: compute_key(
        f"{arguments.all['order_id']} {secrets.token_hex(8)}", secret=secret, label=self.label
    )


def exception_frees() -> None:
    delivery.failed = lambda **_: Move.RELEASE


def completed_first() -> None:
    call = guarded.Guarded._call

    def call_completed(self: Any, handle: Any, *rest: Any) -> Any:
        drive(handle._finish("charged"), handle._ask)
        return call(self, handle, *rest)

    guarded.Guarded._call = call_completed


def no_fence_after_look() -> None:
    looked = delivery.looked

    def looked_unfenced(request: Any, answer: Answer, **told: Any) -> Operation[Any]:
        if answer is not Answer.NOT_DONE:
            return looked(request, answer, **told)

        def steps() -> Any:
            record = record_of((yield Statement("guard/read", request.reading))[0])
            return Begun(
                reply=Reply.ACT, claim=record.claim, reference=record.reference, acting=True, record=record
            )

        return Operation("guard_looked", steps, alone=True)

    delivery.looked = looked_unfenced


def reference_changed() -> None:
    answer = guard_begin._answer

    def answer_changed(request: Any, decision: Any, record: Record, *, acting: bool) -> Begun:
        begun = answer(request, decision, record, acting=acting)
        return replace(begun, reference=request.reference) if decision.move is Move.TAKE_OVER else begun

    guard_begin._answer = answer_changed


def repeated_completion_lost() -> None:
    def complete_late(request: Any, **_: Any) -> Operation[Any]:
        def steps() -> Any:
            yield Statement("guard/read", request.reading)
            return Lost(None)

        return Operation("guard_complete_late", steps, alone=True)

    guard_end.complete_late = complete_late


def stale_acts() -> None:
    operations._stale = lambda record, *_: operations._take_over("whatever the policy says")


def acting_not_fenced() -> None:
    def act(request: Any) -> Operation[bool]:
        def steps() -> Any:
            yield Statement("guard/read", request.reading)
            return True

        return Operation("guard_act", steps, alone=True)

    guard_end.act = act


def payload_ignored() -> None:
    begin = guard_begin.begin
    guard_begin.begin = lambda *args, **told: begin(*args, **{**told, "payload_known": False})


def completion_frees() -> None:
    """The claim is given back when its work is done, as a lock is."""
    release = guard_end.release
    guard_end.complete = lambda request, **_: release(request, error=None)


WAYS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        no_constraint,
        completion_not_fenced,
        lease_ignored,
        taken_over_young,
        key_too_wide,
        key_too_narrow,
        exception_frees,
        completed_first,
        no_fence_after_look,
        reference_changed,
        repeated_completion_lost,
        stale_acts,
        acting_not_fenced,
        payload_ignored,
        completion_frees,
    )
}
WAYS[os.environ["BROKEN"]]()

from guarded import charge  # noqa: E402, F401
