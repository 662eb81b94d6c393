"""A handler's annotations: resolved, sharpened for JSON, and checked for types that JSON cannot carry."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from semel.errors import ConfigurationError

_NO_KEYS = (float, complex, bytes, bytearray, list, tuple, dict, set, frozenset)
_SCALARS = (int, str, bool, types.NoneType)
_Aware = Annotated[datetime, msgspec.Meta(tz=True)]


def resolve(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type of a parameter: text is evaluated in the function's module, none or ``object`` is ``Any``.

    Only this parameter is looked at, so that a context imported under TYPE_CHECKING does no harm.
    A ``datetime`` comes back as an aware one.
    """
    if parameter.annotation is parameter.empty:
        return Any
    return _sharpen(_evaluate(function, parameter.name, parameter.annotation))


def find_part_without_key(function: Callable[..., Any], names: Iterable[str]) -> tuple[str, str] | None:
    """The first of these parameters (or ``return``) that is annotated with what makes no key, such as a float, and the type.

    What cannot be resolved passes: its values are looked at when they come.
    """
    annotations = getattr(_plain_function(function), "__annotations__", {})
    for name in names:
        try:
            found = _evaluate(function, name, annotations[name])
        except (KeyError, ConfigurationError):
            continue
        parts = get_args(found) if name == "return" and get_origin(found) is tuple else (found,)
        for part in parts:
            kind = _makes_no_key(part)
            if kind:
                return name, kind
    return None


def _makes_no_key(annotation: Any) -> str:
    """The type, among those that it names, whose values never make a key; None stands for an argument that is not given."""
    annotation = getattr(annotation, "__supertype__", annotation)  # NewType
    annotation = getattr(annotation, "__value__", annotation)  # type X = …
    origin = get_origin(annotation)
    if origin is Annotated:
        return _makes_no_key(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return next((found for each in get_args(annotation) if (found := _makes_no_key(each))), "")
    kind = origin or annotation
    return kind.__name__ if isinstance(kind, type) and issubclass(kind, _NO_KEYS) else ""


def _evaluate(function: Callable[..., Any], name: str, annotation: Any) -> Any:
    holder = types.SimpleNamespace(__annotations__={name: annotation})
    plain = _plain_function(function)
    try:
        hints = get_type_hints(holder, globalns=getattr(plain, "__globals__", {}), include_extras=True)
    except Exception as error:  # an annotation is an expression: evaluating it may raise anything
        raise ConfigurationError(
            f"The annotation of parameter {name!r} of {getattr(plain, '__qualname__', plain)}, "
            f"{annotation!r}, cannot be resolved: {error}.",
            remedy="Import its types at the top of the module, outside TYPE_CHECKING.",
        ) from error
    return hints[name]


def unsupported(annotation: Any) -> str:
    """Why a value of this type cannot go through JSON, or ""."""
    try:
        found = _custom(msgspec.inspect.type_info(annotation), set())
    except Exception as error:  # msgspec looks into the user's classes
        return str(error)
    return f"JSON cannot carry {getattr(found, '__qualname__', found)}" if found is not None else ""


def is_plain(annotation: Any) -> bool:
    """Whether the type says nothing, as ``Any``, ``list`` and ``dict[str, Any]`` do."""
    return _says_nothing(msgspec.inspect.type_info(annotation))


def find_scalars(annotation: Any) -> tuple[type, ...]:
    """The types among int, str, bool and None whose every value fits; ``annotation`` is a resolved one."""
    if annotation is Any:
        return _SCALARS
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(each for each in _SCALARS if each in get_args(annotation))
    annotation = types.NoneType if annotation is None else annotation
    return (annotation,) if annotation in _SCALARS else ()


def _says_nothing(info: Any) -> bool:
    match info:
        case msgspec.inspect.AnyType():
            return True
        case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
            return _says_nothing(info.item_type)
        case msgspec.inspect.DictType():
            return _says_nothing(info.value_type) and isinstance(
                info.key_type, msgspec.inspect.AnyType | msgspec.inspect.StrType
            )
        case msgspec.inspect.UnionType():
            return all(
                isinstance(each, msgspec.inspect.NoneType) or _says_nothing(each) for each in info.types
            )
    return False


def _custom(info: Any, seen: set[Any]) -> Any:
    """The first type below ``info`` that msgspec has no rule for."""
    if isinstance(info, msgspec.inspect.CustomType | msgspec.inspect.ExtType | msgspec.inspect.RawType):
        return getattr(info, "cls", type(info))
    if isinstance(info, tuple):
        return next((found for each in info if (found := _custom(each, seen)) is not None), None)
    if not isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field):
        return None
    cls = getattr(info, "cls", None)
    if cls is not None:
        if cls in seen:
            return None
        seen.add(cls)
    names = (name for name in info.__struct_fields__ if name not in ("cls", "default", "default_factory"))
    return _custom(tuple(getattr(info, name) for name in names), seen)


def _sharpen(annotation: Any) -> Any:
    """The same type with each bare ``datetime`` outside a class made aware, and ``object`` made ``Any``."""
    if annotation is datetime:
        return _Aware
    if annotation is object:
        return Any
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin in (Union, types.UnionType):
        return Union[tuple(_sharpen(each) for each in arguments)]  # noqa: UP007
    if origin in (list, set, frozenset, tuple, dict):
        return origin[tuple(_sharpen(each) for each in arguments)]
    return annotation


def _plain_function(function: Callable[..., Any]) -> Any:
    """Where the annotations were written: below decorators, partial, and a callable object."""
    unwrapped: Any = inspect.unwrap(function)
    while isinstance(unwrapped, functools.partial):
        unwrapped = inspect.unwrap(unwrapped.func)
    if inspect.ismethod(unwrapped):
        return unwrapped.__func__
    return unwrapped if inspect.isfunction(unwrapped) else type(unwrapped).__call__
