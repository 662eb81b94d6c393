"""A function, guarded or not, as messages reach it: a body is JSON, and its fields are the function's arguments."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

from semel.adapters.sqs.endings import DONE, Ending, ending_of, worst
from semel.adapters.sqs.envelopes import Unwrap
from semel.adapters.sqs.message import Message
from semel.core.arguments import Signature
from semel.core.retry import Backoff
from semel.errors import ConfigurationError, PayloadUnreadable
from semel.guard.beside import Beside
from semel.guard.guarded import Guarded

Function: TypeAlias = Callable[..., Any]
Kind: TypeAlias = str | Callable[[Message], str | None]
"""Which of several functions a message is for: the sender's attribute that says it, by name, or a function of the message."""
Extra: TypeAlias = Literal["refuse", "ignore"]
"""What is done with a field that the function does not take."""
_CORRECT: Final = "Deploy a function that takes it, or correct what is sent and send it again."


class Handler:
    """One function and how its arguments are read from a body."""

    def __init__(self, function: Function, *, unwrap: Sequence[Unwrap] = (), extra: Extra = "refuse") -> None:
        if extra not in ("refuse", "ignore"):
            raise ConfigurationError(f'extra is {extra!r}: give "refuse" or "ignore".')
        plain = function.function if isinstance(function, Guarded) else function
        if inspect.iscoroutinefunction(plain):
            raise ConfigurationError(
                f"{getattr(plain, '__qualname__', plain)} is an async def: messages are handled in threads.",
                remedy="Give a def; it may call asyncio.run(…).",
            )
        self.function = function
        self.unwrap = tuple(unwrap)
        self.extra = extra
        takes_operation = isinstance(function, Guarded) and function.takes_operation
        self.signature = Signature.of(plain, skip_first=takes_operation)

    @property
    def longest_run(self) -> timedelta | None:
        """As a guarded function declares it."""
        return self.function.declaration.longest_run if isinstance(self.function, Guarded) else None

    def read(self, message: Message) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The calls that a message asks for. Raises PayloadUnreadable."""
        payloads: list[Any] = [message.body]
        try:
            for step in self.unwrap:
                payloads = [inner for each in payloads for inner in step(_parse(each))]
        except PayloadUnreadable as error:
            raise _unreadable(message, error.happened, error.remedy) from error
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            raise _unreadable(message, f"{type(error).__name__}: {error}.", "") from error
        try:
            return [self.signature.decode(self._text(each)) for each in payloads]
        except PayloadUnreadable as error:
            raise _unreadable(message, error.happened, _CORRECT) from error
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            raise _unreadable(message, f"{type(error).__name__}: {error}.", "") from error

    def run(
        self,
        message: Message,
        beside: Beside | None,
        *,
        starting: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
    ) -> Ending:
        """Call the function for each payload in the message, and say what that means for the message.

        ``starting`` is called before each call.
        """
        try:
            calls = self.read(message)
        except PayloadUnreadable as error:
            return ending_of(error)
        endings = []
        for args, kwargs in calls:
            starting()
            try:
                call(self.function, args, kwargs, message, beside)
            except BaseException as error:  # whatever it is, it ends this message and no thread
                asked = isinstance(self.function, Guarded)
                endings.append(ending_of(error, asked=asked, receives=message.receives, backoff=backoff))
            else:
                endings.append(DONE)
        return worst(endings)

    def _text(self, payload: Any) -> str | bytes:
        if self.extra == "refuse":
            return payload if isinstance(payload, str | bytes) else json.dumps(payload)
        fields = _parse(payload)
        if not isinstance(fields, Mapping):
            return json.dumps(fields)
        known = {*self.signature.positional, *self.signature.keyword}
        return json.dumps({name: value for name, value in fields.items() if name in known})


class Handlers:
    """The function of a queue, or several and what tells them apart."""

    def __init__(
        self,
        functions: Function | Mapping[str, Function],
        *,
        kind: Kind | None,
        unwrap: Unwrap | Sequence[Unwrap],
        extra: Extra,
    ) -> None:
        steps = (unwrap,) if callable(unwrap) else tuple(unwrap)
        self._only: Handler | None = None
        self._by_kind: dict[str, Handler] = {}
        self._kind = kind
        if isinstance(functions, Mapping):
            self._by_kind = {
                name: Handler(each, unwrap=steps, extra=extra) for name, each in functions.items()
            }
        else:
            self._only = Handler(functions, unwrap=steps, extra=extra)
        if (kind is None) is not (self._only is not None):
            raise ConfigurationError(
                "kind= and a mapping of functions go together.",
                remedy='Give {"charge": charge, …} and kind="type", where type is an attribute of the messages.',
            )

    @property
    def all(self) -> list[Handler]:
        """All of them."""
        return list(self._by_kind.values()) if self._only is None else [self._only]

    @property
    def functions(self) -> tuple[Function, ...]:
        """What they call."""
        return tuple(each.function for each in self.all)

    def pick(self, message: Message) -> Handler:
        """The one for a message. Raises PayloadUnreadable."""
        if self._only is not None:
            return self._only
        kind = message.attribute(self._kind) if isinstance(self._kind, str) else self._ask_kind(message)
        found = self._by_kind.get(kind or "")
        if found is None:
            raise _unreadable(
                message,
                f"No function is for messages of kind {kind!r}.",
                f"There are: {', '.join(self._by_kind)}.",
            )
        return found

    def _ask_kind(self, message: Message) -> str | None:
        assert callable(self._kind)
        try:
            return self._kind(message)
        except Exception as error:
            raise _unreadable(
                message, f"Its kind cannot be told: {type(error).__name__}: {error}.", ""
            ) from error


def call(function: Function, args: Any, kwargs: Any, message: Message, beside: Beside | None) -> Any:
    """Call a function for a message: a guarded one keeps the message, and is kept together with it."""
    if isinstance(function, Guarded):
        return function.run(args, kwargs, message=message.to_kept(), beside=beside)
    return function(*args, **kwargs)


def _parse(payload: Any) -> Any:
    return json.loads(payload) if isinstance(payload, str | bytes) else payload


def _unreadable(message: Message, happened: str, remedy: str) -> PayloadUnreadable:
    return PayloadUnreadable(
        f"Message {message.message_id} is no call: {happened}",
        holds="Nothing was claimed and nothing done.",
        remedy=remedy,
    )
