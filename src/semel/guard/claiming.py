"""The guard as a block: ``with once.claim("charge-order", order_id, effect=…) as op:``, for code that is no function."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from semel.core.effects import Row
from semel.errors import ConfigurationError
from semel.guard.declaration import Arguments, Declaration
from semel.guard.delivery import Repeat, deliver, lookup_of
from semel.guard.flow import Ask, Call, drive, drive_async, has_ended, step_async
from semel.guard.operation import AsyncOperation, Handle, Operation
from semel.guard.places import Place

Kind = TypeVar("Kind", bound=Handle)
_NO_ARGUMENTS: Final = inspect.Signature()


class _Ended(Exception):
    """The end of a flow, with its value."""

    @property
    def value(self) -> Any:
        return self.args[0]


class _Paused(Generic[Kind]):
    """A delivery's flow, stopped where the handler would be called: the block is the handler."""

    def __init__(self, declaration: Declaration, place: Place, kind: type[Kind]) -> None:
        if isinstance(declaration.effect, Row):
            raise ConfigurationError(
                "once.claim(…) does not take Row().",
                remedy="Use the decorator and guarded.on(your_connection).",
            )
        self.declaration = declaration
        self.place = place
        self.kind = kind
        self.handle: Kind | None = None
        self.flow: Generator[Ask | Call, Any, Any] | None = None
        self.kept = ExitStack()
        """Keeps the lease for the length of the block, where it is to be extended."""

    def start(self, ask: Any) -> Generator[Ask | Call, Any, Any]:
        self.handle = None
        lookup = lookup_of(self.declaration)
        nothing = Arguments(_NO_ARGUMENTS, (), {})
        requests = self.declaration.requests(nothing, message=None, dialect=self.place.dialect)

        def make(request: Any, begun: Any) -> Kind:
            self.handle = self.kind(self.declaration, request, begun, ask)
            return self.handle

        self.flow = deliver(
            self.declaration,
            requests,
            beyond=self.declaration.is_beyond_records(nothing),
            find=None if lookup is None else lookup.find,
            make_handle=make,
            handler=lambda handle: handle,
        )
        return self.flow

    def begin(self, step: Ask | Call) -> None:
        """Tell the flow that its handler begins: from here on an exception is the block's."""
        assert isinstance(step, Call)
        step.function()

    def repeated(self, repeat: Repeat, ask: Any) -> Kind:
        """A handle for a repeat: it has the stored result, and its `acting` is refused."""
        handle = self.kind.repeat_of(self.declaration, ask, repeat.result)
        self.handle = handle
        self.flow = None
        return handle


class Claim(_Paused[Operation]):
    """One delivery as a block. In a repeat ``op.is_repeat`` is set, and the block takes ``op.result``."""

    def __init__(self, declaration: Declaration, place: Place) -> None:
        super().__init__(declaration, place, Operation)

    def __enter__(self) -> Operation:
        self.place.refuse_open_transaction(self.declaration.job_type)
        flow = self.start(self.place.ask)
        try:
            step = next(flow)
            while isinstance(step, Ask) or self.handle is None:
                step = self._advance(flow, step)
            self.kept.enter_context(self.place.keep(self.handle))
            self.begin(step)
            return self.handle
        except StopIteration as stop:
            return self.repeated(stop.value, self.place.ask)
        except BaseException as error:
            self.kept.close()
            if not has_ended(flow):  # an interrupt between two steps
                drive(flow, self.place.ask, partial(flow.throw, error))
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kept.close()
        if self.flow is None or self.handle is None:
            return
        try:
            step = self.flow.throw(error) if error is not None else self.flow.send(self.handle.result)
            while True:
                step = self._advance(self.flow, step)
        except StopIteration:
            return
        except BaseException as raised:
            if raised is not error:
                raise

    def _advance(self, flow: Generator[Ask | Call, Any, Any], step: Ask | Call) -> Ask | Call:
        try:
            answer = self.place.ask(step.operation) if isinstance(step, Ask) else step.function()
        except BaseException as error:
            return flow.throw(error)
        return flow.send(answer)


class AsyncClaim(_Paused[AsyncOperation]):
    """`Claim`, as ``async with``."""

    def __init__(self, declaration: Declaration, place: Place) -> None:
        super().__init__(declaration, place, AsyncOperation)

    async def __aenter__(self) -> AsyncOperation:
        self.place.refuse_open_transaction(self.declaration.job_type)
        flow = self.start(self.place.ask_async)
        try:
            step = next(flow)
            while isinstance(step, Ask) or self.handle is None:
                step = await self._advance(flow, step)
            self.kept.enter_context(self.place.keep(self.handle))
            self.begin(step)
            return self.handle
        except (StopIteration, _Ended) as stop:
            return self.repeated(stop.value, self.place.ask_async)
        except BaseException as error:
            self.kept.close()
            if not has_ended(flow):  # an interrupt between two steps
                await drive_async(flow, self.place.ask_async, partial(flow.throw, error))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kept.close()
        if self.flow is None or self.handle is None:
            return
        try:
            step = self.flow.throw(error) if error is not None else self.flow.send(self.handle.result)
            while True:
                step = await self._advance(self.flow, step)
        except (StopIteration, _Ended):
            return
        except BaseException as raised:
            if raised is not error:
                raise

    async def _advance(self, flow: Generator[Ask | Call, Any, Any], step: Ask | Call) -> Ask | Call:
        try:
            try:
                answer = await step_async(step, self.place.ask_async)
            except BaseException as error:
                return flow.throw(error)
            return flow.send(answer)
        except StopIteration as stop:  # cannot leave a coroutine
            raise _Ended(stop.value) from None
