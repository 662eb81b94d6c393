"""The key of an operation as a person types it: words that may stand for text, numbers, dates or identifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from itertools import islice, product
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from semel.core.keys import compute_key
from semel.errors import KeyRefused

MOST: Final = 64
"""Readings that are tried at most; a type in front of a word (``int:42``) leaves one."""


def read_keys(words: Sequence[str]) -> Iterator[str]:
    """The computed keys, 64 hexadecimal digits each, that one part per word may have been; the likeliest first.

    Not for keys made with a secret. Raises KeyRefused for a word that says a type and is not of it.
    """
    seen = set()
    for parts in islice(product(*(_readings(word) for word in words)), MOST):
        try:
            digest = compute_key(parts).digest
        except KeyRefused:
            continue
        if digest not in seen:
            seen.add(digest)
            yield digest


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,30}", text):
        raise ValueError(text)
    return int(text)


_TYPES: Final[Mapping[str, Callable[[str], Any]]] = MappingProxyType(
    {
        "str": str,
        "int": _whole,
        "uuid": UUID,
        "date": date.fromisoformat,
        "datetime": datetime.fromisoformat,
        "decimal": Decimal,
        "bool": _truth,
    }
)


def _readings(word: str) -> list[Any]:
    kind, colon, rest = word.partition(":")
    if colon and kind in _TYPES:
        try:
            return [_TYPES[kind](rest)]
        except (ValueError, InvalidOperation) as error:
            raise KeyRefused(
                f"{rest!r} is no {kind}.", remedy=f"One of: {', '.join(f'{each}:…' for each in _TYPES)}"
            ) from error
    found: list[Any] = []
    for read in _TYPES.values():
        try:
            found.append(read(word))
        except (ValueError, InvalidOperation):
            continue
    return found
