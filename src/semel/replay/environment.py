"""``${NAME}`` in a description's texts: the environment's, or an error that says which one is missing, and where."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from semel.errors import ConfigurationError

_NAMED: Final = re.compile(r"(\$?)\$\{(\w+)\}")
Given = TypeVar("Given")


def fill_in(value: Given, source: str) -> Given:
    """The same with every ``${NAME}`` replaced; ``$${NAME}`` stays as ``${NAME}``. Functions are left as they are."""
    filled: Given = _fill(value, source, "")
    return filled


def _fill(value: Any, source: str, where: str) -> Any:
    match value:
        case str():
            return _NAMED.sub(lambda found: _value_of(found, source, where), value)
        case Mapping():
            return {name: _fill(each, source, _below(where, name)) for name, each in value.items()}
        case list():
            return [_fill(each, source, f"{where}[{place}]") for place, each in enumerate(value)]
        case msgspec.Struct():
            changed = {
                name: _fill(getattr(value, name), source, _below(where, name))
                for name in value.__struct_fields__
            }
            return msgspec.structs.replace(value, **changed)
        case _:
            return value


def _below(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


def _value_of(found: re.Match[str], source: str, where: str) -> str:
    escaped, name = found.groups()
    if escaped:
        return found[0][1:]
    value = os.environ.get(name)
    if value is None:
        raise ConfigurationError(
            f"In {source}, {where} names ${{{name}}}, which is not in the environment.",
            holds="Nothing was sent.",
            remedy=f"Set {name}, or write the value. A text with ${{…}} in it is written as $${{…}}.",
        )
    return value
