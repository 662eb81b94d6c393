"""What a guarded function holds while it runs: the reference, the point of no return, the lease, the end."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, Self, TypeVar

from semel.core.effects import Row
from semel.core.operations import Reply, may_resend
from semel.errors import ClaimLost, ConfigurationError
from semel.guard.answers import log_answer
from semel.guard.beside import Beside
from semel.guard.declaration import Declaration
from semel.guard.flow import Ask, AskStore, AskStoreAsync, Flow, drive, drive_async, patiently
from semel.guard.results import encode_result
from semel.store import guard_end
from semel.store.guard_begin import read
from semel.store.guard_request import Begun, Lost, Request

Result = TypeVar("Result")


class Handle:
    """What both kinds of operation share: one attempt's claim, and the flows of its steps."""

    def __init__(
        self, declaration: Declaration, request: Request, begun: Begun, ask: Any, connection: Any = None
    ) -> None:
        self._ask = ask
        self.declaration = declaration
        self.request = request
        self.reference = begun.reference
        """The stable string to pass to the outside system as its idempotency key; the same over all attempts, until it is
        known that nothing happened."""
        self.attempt = begun.claim
        """How often this operation was claimed, this time included."""
        self.connection = connection
        """The one connection of a `Row()`; None for other effects."""
        self.passed = begun.acting
        """Whether the point of no return counts as passed."""
        self.in_doubt = begun.in_doubt
        """Whether an earlier attempt may have acted: then no failure of this one says that nothing happened."""
        self.is_repeat = False
        """Whether this operation had been completed before: nothing is to be done, and `result` is what was stored."""
        self.completed = False
        self.result: Any = None
        self.lost = False
        self.told: ClaimLost | None = None
        """The answer that this attempt was given by one of its own steps, while its function ran."""
        self.beside: Beside | None = None
        """What is to be held together with the claim."""
        self._acted = False
        self._renewed = time.monotonic()

    @property
    def lease_left(self) -> timedelta:
        """Until the lease ends, by this machine's stopwatch since it was last renewed; negative past it."""
        left = self.request.lease.total_seconds() - (time.monotonic() - self._renewed)
        return timedelta(seconds=left)

    @classmethod
    def repeat_of(cls, declaration: Declaration, ask: Any, result: Any) -> Self:
        """The handle of a repeat: it holds the stored result and no claim."""
        request = declaration.nothing()
        handle = cls(declaration, request, Begun(reply=Reply.REPEAT), ask)
        handle.completed = True
        handle.is_repeat = True
        handle.result = result
        return handle

    def renewed(self, at: float) -> None:
        """The lease was renewed by a statement that was sent at this time of the monotonic clock."""
        self._renewed = max(self._renewed, at)

    @property
    def in_row(self) -> bool:
        """Whether the effect is a row of the caller's own transaction."""
        return isinstance(self.declaration.effect, Row)

    def _enter(self, *, again: bool) -> Flow[None]:
        if self.is_repeat:
            raise ConfigurationError(
                f"{self.declaration.job_type} is a repeat: it has been completed before.",
                remedy="Look at op.is_repeat first, and take op.result.",
            )
        if self._acted and not again:
            raise ConfigurationError(
                f"{self.declaration.job_type} entered op.acting() a second time.",
                remedy="One outside call is one operation; guard each, or say acting(again=True).",
            )
        if self.in_row:
            self.passed = self._acted = True
            return
        yield from self._resend_in_time()
        self._refuse_alone()
        asked = time.monotonic()
        if self.lost or not (yield from patiently(guard_end.act(self.request))):
            yield from self._lose("acting")
        self.passed = self._acted = True
        self.renewed(asked)

    def _refuse_alone(self) -> None:
        """No further step without what is held beside the claim: it may be in other hands, which then hold the claim soon."""
        reason = None if self.beside is None else self.beside.lost()
        if reason is not None:
            raise self._claim_lost(reason)

    def _resend_in_time(self) -> Flow[None]:
        """A paused attempt may come here when the provider has forgotten the reference that another one used."""
        if not self.in_doubt or self.lost:
            return
        record = yield from patiently(read(self.request))
        effect, longest_run = self.declaration.effect, self.declaration.longest_run
        if record is not None and not may_resend(record, effect, longest_run=longest_run):
            raise self._claim_lost("by now the provider may have forgotten its reference")

    def _extend(self, what: str = "extend") -> Flow[None]:
        if self.in_row:
            return
        self._refuse_alone()
        asked = time.monotonic()
        if not (yield from patiently(guard_end.extend(self.request))):
            yield from self._lose(what)
        self.renewed(asked)

    def _finish(self, result: Any) -> Flow[Any]:
        if self.completed:
            return self.result
        encoded, dropped = encode_result(result, self.declaration)
        stored: dict[str, Any] = {"result": encoded, "result_dropped": dropped}
        if self.in_row:
            if not (yield Ask(guard_end.complete_row(self.request, **stored))):
                raise self._claim_lost(
                    "its completion is not in the transaction that claimed it: was there a commit midway?"
                )
        elif not (yield from patiently(guard_end.complete(self.request, **stored))):
            late = yield from patiently(guard_end.complete_late(self.request, **stored))
            if isinstance(late, Lost):
                self.lose()
                raise self._claim_lost(
                    "another attempt has taken it over; what this one did is kept as evidence"
                )
        self.completed = True
        self.result = result
        return result

    def lose(self) -> None:
        """Somebody else has the claim, or a person decided."""
        self.lost = True
        if self.beside is not None:
            self.beside.claim_lost()

    def _lose(self, tried: str) -> Flow[None]:
        self.lose()
        yield from patiently(guard_end.lost(self.request, tried=tried))
        raise self._claim_lost("another attempt has taken it over, or a person decided")

    def _claim_lost(self, reason: str) -> ClaimLost:
        log_answer(logging.WARNING, self.request, "claim_lost", reason)
        self.told = ClaimLost(
            f"This attempt at {self.declaration.job_type} no longer holds its claim: {reason}.",
            remedy="Stop; the record says what became of the operation.",
        )
        return self.told


class Operation(Handle):
    """The first argument of a guarded ``def``. Of one attempt; do not keep it."""

    _ask: AskStore

    @contextmanager
    def acting(self, *, again: bool = False) -> Iterator[None]:
        """The point of no return, around the outside call. Stored and fenced; renews the lease.

        Before it, any failure releases the claim: nothing happened. Raises ClaimLost where somebody else has the claim, and
        then the call must not be made.
        """
        drive(self._enter(again=again), self._ask)
        yield

    def done(self, result: Result) -> Result:
        """Complete now: an exception after this changes nothing. Answers the result. Raises ClaimLost."""
        return drive(self._finish(result), self._ask)  # type: ignore[no-any-return]

    def extend(self) -> None:
        """Renew the lease from now. Raises ClaimLost."""
        drive(self._extend(), self._ask)

    def check(self) -> None:
        """Raise ClaimLost if somebody else holds the claim by now; renews the lease."""
        drive(self._extend("check"), self._ask)


class AsyncOperation(Handle):
    """The first argument of a guarded ``async def``."""

    _ask: AskStoreAsync

    @asynccontextmanager
    async def acting(self, *, again: bool = False) -> AsyncIterator[None]:
        """`Operation.acting`, as ``async with``."""
        await drive_async(self._enter(again=again), self._ask)
        yield

    async def done(self, result: Result) -> Result:
        """`Operation.done`."""
        return await drive_async(self._finish(result), self._ask)

    async def extend(self) -> None:
        """`Operation.extend`."""
        await drive_async(self._extend(), self._ask)

    async def check(self) -> None:
        """`Operation.check`."""
        await drive_async(self._extend("check"), self._ask)
