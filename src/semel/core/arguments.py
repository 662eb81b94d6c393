"""A handler's arguments as a JSON object by name, checked against its signature on the way in and out.

One msgspec struct type is built per handler; a payload is decoded, and validated, in one pass. The object is
stored as jsonb, which reorders keys and rewrites numbers (1e16 becomes 10000000000000000): a typed parameter
does not notice, an untyped one then gets an int.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec

from semel.core.annotations import find_scalars, is_plain, resolve, unsupported
from semel.errors import ArgumentError, ArgumentsTooLarge, ConfigurationError, PayloadUnreadable

DEFAULT_LIMIT: Final = 64 * 1024
"""Bytes of a payload."""

_LARGEST_INTEGER_BITS: Final = 14_000  # below the 4,300 digits that Python turns into text
_DEEPEST: Final = 100
"""Levels of lists and dictionaries: far from the stack limits of Python and PostgreSQL."""

_SHORT: Final = 4_000
"""Bytes of a payload in which no integer is too long to be stored."""
_MOST_CALLS: Final = 256
"""Combinations of types that one handler's scalars are looked up in."""

_ENCODER: Final = msgspec.json.Encoder()
_KEPT: Final = (datetime, date, time, timedelta, Decimal, UUID, bytes)
_PATH: Final = re.compile(r" - at `\$\.([^.\[`]+)")
_FIELD: Final = re.compile(r"(?:required|unknown) field `([^`]*)`$")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True, eq=False)
class ScalarCalls:
    """Encodes many calls by position, as many arguments each, that are nothing but int, str, bool and None."""

    least: int
    """Arguments of a call that leaves out all that have a default."""
    fitting: tuple[frozenset[type], ...]
    """By position, the types whose every value fits."""
    row: type[msgspec.Struct]
    """The arguments by name; those at the end may be left out."""

    def encode(self, calls: Sequence[tuple[Any, ...]]) -> list[bytes]:
        """A payload each; nothing where one of them has to be looked at."""
        counts = set(map(len, calls))
        if len(counts) != 1 or not self.least <= min(counts) <= len(self.fitting):
            return []
        for column, fitting in zip(zip(*calls, strict=True), self.fitting, strict=False):
            if not fitting.issuperset(map(type, column)):
                return []
        try:
            lines = _ENCODER.encode_lines([self.row(*call) for call in calls])
        except (TypeError, ValueError):
            return []
        return [] if b"\\u0000" in lines else lines.splitlines()


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """The codec of one handler. Make it with :meth:`of`."""

    name: str
    """The handler's, for messages."""
    positional: tuple[str, ...]
    """Parameters that are passed by position, in order."""
    keyword: tuple[str, ...]
    """Parameters that can only be passed by name."""
    variadic: str | None
    """The name of ``*args``, stored as a list under it."""
    required: frozenset[str]
    by_name: frozenset[str]
    """Parameters that a caller may pass by name."""
    named: tuple[str, ...]
    """`positional`, where a call that names them all in this order can be one of `scalars`."""
    plain: frozenset[str]
    """Parameters without a type: they take only what JSON carries as it is."""
    scalars: frozenset[tuple[type, ...]]
    """The types of the calls by position whose values fit for sure: nothing but int, str, bool and None."""
    many: ScalarCalls | None
    """Many of such calls at once; None where a call by position alone cannot be one."""
    decoder: msgspec.json.Decoder[msgspec.Struct]

    @classmethod
    def of(cls, function: Callable[..., Any], *, skip_first: bool = False) -> Signature:
        """The codec for ``function``; ``skip_first`` leaves out the context that the worker passes first.

        Raises ConfigurationError for ``**kwargs``, an annotation that cannot be resolved, and a type that
        JSON cannot carry. A ``datetime`` must be aware, both ways.
        """
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        parameters = _parameters(function, name, skip_first=skip_first)
        kinds = {each.name: each.kind for each in parameters}
        variadic = next(
            (key for key, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL), None
        )
        types = {each.name: _field_type(function, name, each) for each in parameters}
        positional = tuple(key for key, kind in kinds.items() if kind in _POSITIONAL)
        by_name = frozenset(key for key, kind in kinds.items() if kind in _BY_NAME)
        scalars = _scalars(parameters, types)
        return cls(
            name=name,
            scalars=scalars,
            many=_scalar_calls(parameters, types) if scalars else None,
            positional=positional,
            named=positional if scalars and set(positional) <= by_name else (),
            keyword=tuple(key for key, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY),
            variadic=variadic,
            required=frozenset(
                each.name for each in parameters if each.default is each.empty and each.name != variadic
            ),
            by_name=by_name,
            plain=frozenset(key for key, annotation in types.items() if is_plain(annotation)),
            decoder=_decoder(parameters, types),
        )

    def encode(
        self,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        limit: int = DEFAULT_LIMIT,
    ) -> bytes:
        """The payload, a JSON object of at most ``limit`` bytes, without what is left to its default."""
        payload = self._encode_scalars(args, kwargs)
        if payload is not None and len(payload) <= limit:
            return payload
        return self._encode_checked(args, kwargs or {}, limit)

    def encode_many(self, calls: Sequence[tuple[Any, ...]], *, limit: int = DEFAULT_LIMIT) -> list[bytes]:
        """`encode` of each call by position; at once where the types of all of them show that they fit."""
        payloads = self.many.encode(calls) if self.many is not None else []
        if payloads and max(map(len, payloads)) <= min(limit, _SHORT):
            return payloads
        return [self.encode(call, limit=limit) for call in calls]

    def decode(self, payload: bytes | str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to call the handler with; those that the payload leaves out have their defaults."""
        try:
            values = msgspec.structs.astuple(self.decoder.decode(payload))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            argument, problem = _explain(error)
            about = f"argument {argument!r}: " if argument else ""
            raise PayloadUnreadable(
                f"The payload does not fit {self.name}: {about}{problem}.",
                holds="The job keeps its payload.",
                remedy="Deploy a handler that takes it, or correct the payload and retry the job.",
            ) from None
        if not self.keyword and self.variadic is None:
            return values, {}
        count = len(self.positional)
        keywords = dict(zip(self.keyword, values[count:], strict=False))
        return values[:count] + (tuple(values[-1]) if self.variadic else ()), keywords

    def _encode_scalars(self, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> bytes | None:
        """The payload where the types alone show that it fits; None where the values have to be looked at."""
        if not kwargs:
            types = tuple(map(type, args))
            values: Mapping[str, Any] = dict(zip(self.positional, args, strict=False))
        elif args or tuple(kwargs) != self.named:
            return None
        else:
            types = tuple(map(type, kwargs.values()))
            values = kwargs
        if types not in self.scalars:
            return None
        try:
            payload = _ENCODER.encode(values)
        except (TypeError, ValueError):
            return None
        if b"\\u0000" in payload or (int in types and len(payload) > _SHORT):
            return None
        return payload

    def _encode_checked(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], limit: int) -> bytes:
        values = self._bind(args, kwargs)
        tree = {name: self._builtins(name, value) for name, value in values.items()}
        payload = _ENCODER.encode(tree)
        if len(payload) > limit:
            sizes = {name: len(_ENCODER.encode(value)) for name, value in tree.items()}
            largest = max(sizes, key=lambda name: sizes[name], default=None)
            raise ArgumentsTooLarge(
                f"The arguments of {self.name} take {len(payload):,} bytes, over the limit of {limit:,}; "
                f"the largest is {largest!r} with {sizes.get(largest or '', 0):,}.",
                argument=largest,
                remedy="Store the data and pass its id.",
            )
        try:
            self.decoder.decode(payload)
        except msgspec.DecodeError as error:
            argument, problem = _explain(error)
            raise ArgumentError(
                f"Argument {argument!r} of {self.name} does not fit: {problem}.", argument=argument
            ) from None
        return payload

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(zip(self.positional, args, strict=False))
        rest = args[len(self.positional) :]
        if rest and self.variadic is None:
            raise ArgumentError(
                f"{self.name} takes {len(self.positional)} positional arguments at most; got {len(args)}."
            )
        if rest and self.variadic is not None:
            values[self.variadic] = list(rest)
        for name, value in kwargs.items():
            if name not in self.by_name:
                raise ArgumentError(f"{self.name} takes no argument {name!r} by name.", argument=name)
            if name in values:
                raise ArgumentError(f"{self.name} got argument {name!r} twice.", argument=name)
            values[name] = value
        if not self.required <= values.keys():
            missing = next(
                name for name in (*self.positional, *self.keyword) if name in self.required - values.keys()
            )
            raise ArgumentError(f"{self.name} lacks its argument {missing!r}.", argument=missing)
        return values

    def _builtins(self, name: str, value: Any) -> Any:
        try:
            tree = value if name in self.plain else msgspec.to_builtins(value, builtin_types=_KEPT)
            problem = _flaw(tree, plain=name in self.plain)
        except (TypeError, ValueError, RecursionError) as error:
            problem = str(error)
        if problem:
            raise ArgumentError(
                f"Argument {name!r} of {self.name} cannot be stored: {problem}.", argument=name
            )
        return tree


_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _parameters(function: Callable[..., Any], name: str, *, skip_first: bool) -> list[inspect.Parameter]:
    """In the order of the struct's fields: positional, keyword-only, ``*args``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:  # no callable, or one written in C
        raise ConfigurationError(f"{name} has no signature that can be read: {error}.") from error
    if skip_first:
        if not parameters or parameters[0].kind not in _POSITIONAL:
            raise ConfigurationError(f"{name} takes no first argument for the context.")
        parameters = parameters[1:]
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise ConfigurationError(
                f"{name} takes **{parameter.name}, so that its arguments cannot be checked by name.",
                remedy=f"Name them, or take one dict: {parameter.name}: dict[str, Any].",
            )
    order = (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
    return sorted(parameters, key=lambda parameter: order.index(parameter.kind))


def _field_type(function: Callable[..., Any], name: str, parameter: inspect.Parameter) -> Any:
    annotation = resolve(function, parameter)
    flaw = unsupported(annotation)
    if flaw:
        raise ConfigurationError(
            f"Parameter {parameter.name!r} of {name} cannot have its annotation "
            f"{inspect.formatannotation(annotation)}: {flaw}.",
            remedy="Use types that JSON can carry: str, int, list, dict, dataclasses, datetime, UUID …",
        )
    return (
        list.__class_getitem__(annotation)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL
        else annotation
    )


def _decoder(
    parameters: list[inspect.Parameter], types: Mapping[str, Any]
) -> msgspec.json.Decoder[msgspec.Struct]:
    # Fields are numbered, since msgspec refuses some names that Python allows (such as __x).
    fields: list[Any] = []
    for number, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            fields.append((f"field{number}", types[parameter.name], msgspec.field(default_factory=list)))
        elif parameter.default is not parameter.empty:
            fields.append((f"field{number}", types[parameter.name], _default(parameter.default)))
        else:
            fields.append((f"field{number}", types[parameter.name]))
    struct = msgspec.defstruct(
        "Arguments",
        fields,
        rename={f"field{number}": parameter.name for number, parameter in enumerate(parameters)},
        forbid_unknown_fields=True,
        kw_only=True,
    )
    return msgspec.json.Decoder(struct)


def _scalars(parameters: list[inspect.Parameter], types: Mapping[str, Any]) -> frozenset[tuple[type, ...]]:
    if any(each.kind is each.KEYWORD_ONLY and each.default is each.empty for each in parameters):
        return frozenset()
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    fitting = [find_scalars(types[each.name]) for each in positional]
    calls: set[tuple[type, ...]] = set()
    for count in range(sum(each.default is each.empty for each in positional), len(positional) + 1):
        if math.prod(map(len, fitting[:count])) > _MOST_CALLS:
            break
        calls.update(itertools.product(*fitting[:count]))
    return frozenset(calls)


def _scalar_calls(parameters: list[inspect.Parameter], types: Mapping[str, Any]) -> ScalarCalls:
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    names = {f"field{number}": each.name for number, each in enumerate(positional)}
    fields = [(name, Any, msgspec.UNSET) for name in names]
    return ScalarCalls(
        least=sum(each.default is each.empty for each in positional),
        fitting=tuple(frozenset(find_scalars(types[each.name])) for each in positional),
        row=msgspec.defstruct("Row", fields, rename=names, gc=False),
    )


def _default(value: Any) -> Any:
    """The function's own default object, as a call without the argument would use it."""
    return msgspec.field(default_factory=lambda: value)


def _explain(error: Exception) -> tuple[str | None, str]:
    """The argument at fault, where msgspec names one, and what is wrong."""
    text = str(error)
    path = _PATH.search(text)
    if path:
        return path[1], text
    named = _FIELD.search(text)
    if named:
        return named[1], "it is missing" if "required" in text else "the handler takes none of that name"
    return None, text


def _flaw(value: Any, *, plain: bool, depth: int = 0) -> str:
    """What jsonb could not give back as it was put in, or ""."""
    if depth > _DEEPEST:
        return f"it is nested deeper than {_DEEPEST} levels"
    match value:
        case None | bool():
            return ""
        case str():
            return "a string has a NUL or a lone surrogate" if _UNSTORABLE.search(value) else ""
        case int():
            return (
                "an integer has more than 4,200 digits" if value.bit_length() > _LARGEST_INTEGER_BITS else ""
            )
        case float():
            return "" if math.isfinite(value) else f"{value} is not a number that JSON has"
        case list() | tuple():
            return next(filter(None, (_flaw(each, plain=plain, depth=depth + 1) for each in value)), "")
        case dict():
            return _dict_flaw(value, plain=plain, depth=depth + 1)
    if plain:
        return (
            f"{type(value).__name__} would come back as something else; annotate the parameter with its type"
        )
    if isinstance(value, datetime) and value.utcoffset() is None:
        return f"the datetime {value.isoformat()} has no time zone"
    if isinstance(value, Decimal) and not value.is_finite():
        return f"the Decimal {value} is not finite"
    return ""


def _dict_flaw(value: dict[Any, Any], *, plain: bool, depth: int) -> str:
    for key, each in value.items():
        if plain and not isinstance(key, str):
            return f"the dictionary key {key!r} would come back as a string; annotate the parameter"
        flaw = _flaw(key, plain=plain, depth=depth) or _flaw(each, plain=plain, depth=depth)
        if flaw:
            return flaw
    return ""
