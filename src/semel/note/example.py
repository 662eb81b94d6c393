"""A worked example of a key: from arguments that somebody gave, else from the annotations."""

from __future__ import annotations

import datetime as dates
import functools
import inspect
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Union, get_args, get_origin
from uuid import UUID

from semel.core.annotations import resolve
from semel.core.arguments import Signature
from semel.errors import ConfigurationError, SemelError
from semel.guard.declaration import Arguments
from semel.guard.guarded import Guarded

DIGITS: Final = 16
"""Of a digest, as far as it is shown."""
_BY_TYPE: Final = types.MappingProxyType(
    {
        bool: True,
        int: 42,
        UUID: UUID("00000000-0000-4000-8000-000000000042"),
        Decimal: Decimal("9.90"),
        dates.date: dates.date(2026, 1, 31),
        dates.datetime: dates.datetime(2026, 1, 31, 8, tzinfo=dates.UTC),
    }
)


@dataclass(frozen=True, slots=True)
class Example:
    """One call, and what comes of it."""

    arguments: str
    """As JSON, by name."""
    text: str
    """What was hashed; empty where a secret keeps it to itself."""
    digest: str
    """Its beginning; empty with a secret, which differs from place to place."""
    label: str | None
    scope: str
    fingerprint: str | None


def work_out(guarded: Guarded[..., Any], given: Mapping[str, Any] | None) -> Example | None:
    """The example; None where the annotations do not tell what a call looks like. Raises where ``given`` does not fit."""
    try:
        args, kwargs, shown = _read(guarded, given) if given is not None else _make_up(guarded)
        return _compute(guarded, args, kwargs, shown)
    except (SemelError, TypeError, ValueError, AttributeError, LookupError) as error:
        if given is None:
            return None
        if isinstance(error, SemelError):
            raise
        raise ConfigurationError(
            f"The example {json.dumps(dict(given))} is no call of {guarded.declaration.job_type}: {error}.",
            remedy=f"Give its arguments by name: {', '.join(guarded.signature.parameters)}.",
        ) from error


def _compute(
    guarded: Guarded[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], shown: Mapping[str, Any]
) -> Example:
    declaration = guarded.declaration
    arguments = Arguments(guarded.signature, args, kwargs)
    key = declaration.compute_key(arguments)
    request = declaration.requests(arguments, message=None, dialect="postgresql")[0]
    secret = declaration.secret is not None
    fingerprint = None if request.fingerprint is None or secret else request.fingerprint[:DIGITS]
    return Example(
        arguments=json.dumps(shown, default=str, ensure_ascii=False),
        text="" if secret else key.text,
        digest="" if secret else key.digest[:DIGITS],
        label=key.label,
        scope=request.scope,
        fingerprint=fingerprint,
    )


def _read(
    guarded: Guarded[..., Any], given: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], Mapping[str, Any]]:
    """The arguments as a message would bring them: JSON, made into what the annotations say."""

    @functools.wraps(guarded.function)
    def stub(*args: Any, **kwargs: Any) -> None:
        """Only its signature counts."""

    stub.__signature__ = guarded.signature  # type: ignore[attr-defined]
    try:
        signature = Signature.of(stub)
    except ConfigurationError:  # annotations that JSON cannot carry: the values count as they are
        return (), dict(given), given
    args, kwargs = signature.decode(json.dumps(given))
    return args, kwargs, given


def _make_up(guarded: Guarded[..., Any]) -> tuple[tuple[Any, ...], dict[str, Any], Mapping[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for name, parameter in guarded.signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is not parameter.empty:
            continue
        value = _value(guarded, parameter)
        shown[name] = value.value if isinstance(value, Enum) else value
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[name] = value
        else:
            args.append(value)
    return tuple(args), kwargs, shown


def _value(guarded: Guarded[..., Any], parameter: inspect.Parameter) -> Any:
    """A value of the parameter's type. Raises LookupError where there is none that anybody would guess."""
    kind = resolve(guarded.function, parameter)
    while get_origin(kind) is not None and hasattr(kind, "__metadata__"):  # Annotated
        kind = get_args(kind)[0]
    kind = getattr(kind, "__supertype__", kind)  # NewType
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    if kind is str:
        return f"{parameter.name}-42"
    if kind is float:
        return 9.9
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return _BY_TYPE[kind]
