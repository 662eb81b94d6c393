"""Tells calls apart by what they were given: the same in every process, wherever an object lies in memory there."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DEEPEST = 8
_PLAIN: Any = object.__repr__


def digest_of(args: Any, kwargs: Any) -> str:
    """A short digest of a call's arguments."""
    shown = _text([args, kwargs], 0)
    return hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:16]


def _text(value: Any, depth: int) -> str:
    """Of an object that shows nothing of itself, its class and its attributes."""
    kind: type[Any] = type(value)
    below = depth + 1
    if depth > _DEEPEST:
        return kind.__qualname__
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{_text(name, below)}:{_text(each, below)}' for name, each in value.items()))}}}"
    if isinstance(value, (set, frozenset)):
        return f"{kind.__qualname__}({','.join(sorted(_text(each, below) for each in value))})"
    if isinstance(value, (list, tuple)):
        return f"{kind.__qualname__}({','.join(_text(each, below) for each in value)})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        return f"{kind.__qualname__}{_text(fields, below)}"
    if kind.__repr__ is _PLAIN:
        return f"{kind.__qualname__}{_text(getattr(value, '__dict__', {}), below)}"
    try:
        return without_addresses(repr(value))
    except Exception:
        return kind.__qualname__


def without_addresses(shown: str) -> str:
    """What ``repr`` says, but for where in memory it is."""
    return _ADDRESS.sub("", shown)
