"""What would fail at each call of a guarded function fails where it is declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from semel.core.annotations import find_part_without_key, resolve
from semel.errors import ConfigurationError
from semel.guard.declaration import Declaration, KeySource
from semel.guard.operation import Handle


def signature_of_callers(
    declaration: Declaration, function: Callable[..., Any], *, takes_operation: bool, filled_in: int
) -> inspect.Signature:
    """Without the operation and what else is filled in behind it. Raises ConfigurationError where it is missing."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    count = int(takes_operation) + filled_in
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    leading = [each for each in parameters[:count] if each.kind in by_position]
    if len(leading) < count or (takes_operation and _is_another(declaration, function, leading)):
        first = f"its first is {parameters[0].name!r}" if parameters else "it takes none"
        raise ConfigurationError(
            f"{getattr(function, '__qualname__', function)} takes no operation as its first parameter: {first}.",
            remedy="Write def charge(op: semel.Operation, …), or declare with_operation=False.",
        )
    return signature.replace(parameters=parameters[count:])


def _is_another(
    declaration: Declaration, function: Callable[..., Any], leading: list[inspect.Parameter]
) -> bool:
    """Whether a parameter that would be filled in is one of the callers': it makes the key, or cannot be an operation."""
    names = {each.name for each in leading}
    if names & set(declaration.payload or ()):
        return True
    scope = declaration.scope if callable(declaration.scope) else None  # text is the scope itself
    if any(names & _taken(source) for source in (declaration.key, declaration.dated, scope)):
        return True
    try:
        kind = resolve(function, leading[0])
    except ConfigurationError:  # a name that only a type checker knows
        return False
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return False
    return not (issubclass(kind, Handle) or issubclass(Handle, kind))


def _taken(source: KeySource | None) -> set[str]:
    """The arguments that a key, a date or a scope is made of."""
    if source is None:
        return set()
    if not callable(source):
        return {source} if isinstance(source, str) else set(source)
    try:
        parameters = inspect.signature(source).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {each.name for each in parameters if each.default is each.empty}


def refuse_parts_without_key(declaration: Declaration, function: Callable[..., Any]) -> None:
    """A key that is annotated as a float or another type that makes none would be refused at each call."""
    source = declaration.key
    if callable(source):
        found = find_part_without_key(source, ("return",))
    else:
        found = find_part_without_key(function, (source,) if isinstance(source, str) else source)
    if found is None:
        return
    name, kind = found
    where = "what its key function returns" if name == "return" else f"{name!r} in its key"
    raise ConfigurationError(
        f"{declaration.job_type} has {where} annotated as {kind}, which makes no key.",
        remedy="Give str, int, bool, UUID, date, aware datetime, Decimal or an enum.",
    )


def check_names(declaration: Declaration, signature: inspect.Signature, *, takes_operation: bool) -> None:
    """The names of a key and a payload are the function's own."""
    if declaration.acting == "explicit" and not takes_operation:
        raise ConfigurationError(
            f'{declaration.job_type} has acting="explicit" and with_operation=False: it could never call op.acting().',
            remedy='Take the operation as the first parameter, or declare acting="from_start".',
        )
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values()):
        return
    source = declaration.key
    keyed = () if callable(source) else (source,) if isinstance(source, str) else tuple(source)
    if not callable(source) and not keyed:
        raise ConfigurationError(
            f"{declaration.job_type} has an empty key.",
            remedy="Name the arguments that say which operation it is.",
        )
    for name in (*keyed, *(declaration.payload or ())):
        if name not in signature.parameters:
            raise ConfigurationError(
                f"{declaration.job_type} names {name!r} in its key or payload, which is no parameter of its "
                "function.",
                remedy=f"There are: {', '.join(signature.parameters) or 'none'}.",
            )
