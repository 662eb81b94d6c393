"""A guarded function: called like the function, less its first parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, cast

from semel.core.effects import Row
from semel.core.results import is_unrun
from semel.errors import RetryTransaction, UnsafeClaim
from semel.guard.beside import Beside
from semel.guard.checks import check_names, refuse_parts_without_key, signature_of_callers
from semel.guard.declaration import Arguments, Declaration
from semel.guard.delivery import Repeat, Unacted, answer, busy, deliver, deliver_row, log_retry, lookup_of
from semel.guard.flow import Flow, drive, drive_async
from semel.guard.operation import AsyncOperation, Handle, Operation
from semel.guard.places import Inside, Place
from semel.guard.results import decode_result
from semel.guard.unrun import refuse_generators, refuse_unrun
from semel.store.faults import LockBusy
from semel.store.guard_request import Begun, Request

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Delivery:
    """One call: the requests that its arguments make, and the arguments."""

    arguments: Arguments
    requests: list[Request]
    beyond: bool
    args: Any
    kwargs: Any
    tx: Any
    leading: tuple[Any, ...]
    beside: Beside | None
    proven: bool


class Guarded(Generic[P, R]):
    """What ``@once.operation`` leaves in place of the function. Calling it is one delivery of the operation.

    Returns the function's result, or the stored one of a repeat. Raises InProgress, Busy, Held, PayloadMismatch and
    Abandoned without calling the function; ClaimLost where another attempt took over.
    """

    def __init__(
        self,
        declaration: Declaration,
        function: Callable[..., R],
        place: Place,
        *,
        takes_operation: bool,
        filled_in: int = 0,
    ) -> None:
        refuse_generators(declaration.job_type, function)
        functools.update_wrapper(self, function)
        self.declaration = declaration
        self.function = function
        self.place = place
        self.takes_operation = takes_operation
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = signature_of_callers(
            declaration, function, takes_operation=takes_operation, filled_in=filled_in
        )
        self.returns = _returns(function)
        self.__signature__ = self.signature
        check_names(declaration, self.signature, takes_operation=takes_operation)
        refuse_parts_without_key(declaration, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(args, kwargs)

    def on(self, tx: Any) -> BoundGuard[P, R]:
        """The same, inside your own transaction: for a `Row()`, whose claim, effect and completion are one commit."""
        if not isinstance(self.declaration.effect, Row):
            raise UnsafeClaim(
                f"{self.declaration.job_type} has an effect outside the database: its claim may not sit in a transaction "
                "that can still roll back.",
                holds="Nothing was claimed and nothing done.",
                remedy="Call it without on(…), after your commit; or declare effect=Row().",
            )
        return BoundGuard(self, tx)

    def run(
        self,
        args: Any,
        kwargs: Any,
        *,
        tx: Any = None,
        message: str | None = None,
        leading: tuple[Any, ...] = (),
        beside: Beside | None = None,
        proven: bool = False,
    ) -> R:
        """One delivery; for adapters, which know how to send the message again.

        ``leading`` is what an adapter fills in behind the operation, such as a job's context. ``beside`` is what it holds
        only together with the claim. ``proven`` says that ``tx`` is the queue's: it leads to the guard's database, and
        rolls back whatever this call raises.
        """
        arguments = Arguments(self.signature, args, kwargs)
        delivery = _Delivery(
            arguments,
            self.declaration.requests(arguments, message=message, dialect=self.place.dialect),
            self.declaration.is_beyond_records(arguments),
            args,
            kwargs,
            tx,
            leading,
            beside,
            proven,
        )
        return cast("R", self._run_async(delivery) if self.is_async else self._run(delivery))

    def _run(self, delivery: _Delivery) -> Any:
        if isinstance(self.declaration.effect, Row):
            with _busy_where_locked(delivery.requests[0]), self.place.transaction(delivery.tx) as inside:
                result = drive(self._row_flow(delivery, inside, self.place.ask), inside.ask)
            return self._result(result)
        self.place.refuse_open_transaction(self.declaration.job_type)
        return self._result(drive(self._flow(delivery, self.place.ask), self.place.ask))

    async def _run_async(self, delivery: _Delivery) -> Any:
        if isinstance(self.declaration.effect, Row):
            with _busy_where_locked(delivery.requests[0]):
                result = await self._run_row_async(delivery)
            return self._result(result)
        self.place.refuse_open_transaction(self.declaration.job_type)
        flow = self._flow(delivery, self.place.ask_async)
        return self._result(await drive_async(flow, self.place.ask_async))

    async def _run_row_async(self, delivery: _Delivery) -> Any:
        async with self.place.transaction_async(delivery.tx) as inside:
            flow = self._row_flow(delivery, inside, self.place.ask_async)
            return await drive_async(flow, inside.ask, shield=not delivery.proven)

    def _flow(self, delivery: _Delivery, ask: Any) -> Flow[Any]:
        lookup = lookup_of(self.declaration)
        return deliver(
            self.declaration,
            delivery.requests,
            beyond=delivery.beyond,
            find=None if lookup is None else partial(delivery.arguments.call_behind, lookup.find),
            make_handle=lambda request, begun: self._handle(request, begun, ask, None, delivery.beside),
            handler=lambda handle: self._call(handle, delivery.leading, delivery.args, delivery.kwargs),
        )

    def _row_flow(self, delivery: _Delivery, inside: Inside, apart: Any) -> Flow[Any]:
        if inside.given is not None and not delivery.proven:
            same = self.place.same_database
            yield from same.require(self.declaration.job_type, inside.given, apart)
        return (yield from self._row_delivery(delivery, inside, apart))

    def _row_delivery(self, delivery: _Delivery, inside: Inside, apart: Any) -> Flow[Any]:
        return deliver_row(
            self.declaration,
            delivery.requests,
            beyond=delivery.beyond,
            apart=apart,
            make_handle=lambda request, begun: self._handle(request, begun, inside.ask, inside.connection),
            handler=lambda handle: self._call(handle, delivery.leading, delivery.args, delivery.kwargs),
        )

    def _handle(
        self, request: Request, begun: Begun, ask: Any, connection: Any, beside: Beside | None = None
    ) -> Handle:
        kind = AsyncOperation if self.is_async else Operation
        handle = kind(self.declaration, request, begun, ask, connection)
        handle.beside = beside
        return handle

    def _call(self, handle: Handle, filled_in: Any, args: Any, kwargs: Any) -> Any:
        leading = (handle, *filled_in) if self.takes_operation else filled_in
        if self.is_async:
            return self._call_async(handle, leading, args, kwargs)
        with self.place.keep(handle):
            result = self.function(*leading, *args, **kwargs)
        if is_unrun(result):
            refuse_unrun(handle, result)
        return result

    async def _call_async(self, handle: Handle, leading: Any, args: Any, kwargs: Any) -> Any:
        with self.place.keep(handle):
            return await cast("Coroutine[Any, Any, Any]", self.function(*leading, *args, **kwargs))

    def _result(self, result: Any) -> Any:
        if isinstance(result, Unacted):
            result = answer(self.declaration, result.request, result.begun)
        return decode_result(result.result, self.returns) if isinstance(result, Repeat) else result


class BoundGuard(Generic[P, R]):
    """A guarded function over the caller's own transaction."""

    def __init__(self, guarded: Guarded[P, R], tx: Any) -> None:
        self._guarded = guarded
        self._tx = tx

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        guarded = self._guarded
        return guarded.run(args, kwargs, tx=self._tx)


@contextmanager
def _busy_where_locked(request: Request) -> Iterator[None]:
    """A transaction that could not begin or commit for another's lock, as on SQLite, has stored nothing.

    One that the database wants to have run again is a line of the log as every other answer is.
    """
    try:
        yield
    except LockBusy as error:
        raise busy(request) from error
    except RetryTransaction as error:
        log_retry(request, error)
        raise


def _returns(function: Callable[..., Any]) -> Any:
    try:
        return inspect.get_annotations(function, eval_str=True).get("return")
    except (NameError, TypeError):  # a forward reference that only a type checker knows
        return None


@dataclass(frozen=True)
class Guarding:
    """The decorator that ``once.operation(…)`` makes; ``@app.job(once=…)`` takes it as well."""

    declaration: Declaration
    place: Place
    takes_operation: bool

    def __call__(self, function: Callable[..., Any]) -> Guarded[..., Any]:
        return self.guard(function)

    def guard(self, function: Callable[..., Any], *, filled_in: int = 0) -> Guarded[..., Any]:
        """Guard a function whose caller fills in some parameters behind the operation."""
        return Guarded(
            self.declaration, function, self.place, takes_operation=self.takes_operation, filled_in=filled_in
        )
