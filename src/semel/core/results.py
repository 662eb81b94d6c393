"""What a handler returned: as JSON to be stored, or not a result yet."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec


def encode_result(result: Any, limit: int) -> tuple[bytes | None, str]:
    """The result as JSON of at most ``limit`` bytes; where it cannot be stored None and the reason, else no reason.

    A result that cannot be stored is dropped: what was done is done all the same.
    """
    if result is None:
        return None, ""
    try:
        encoded = msgspec.json.encode(result)
    except Exception as error:  # the types' own hooks may raise anything
        return None, str(error) or type(error).__name__
    if len(encoded) > limit or b"\\u0000" in encoded:  # jsonb takes no NUL
        return None, f"{len(encoded)} bytes, or a NUL in it"
    return encoded, ""


def is_unrun(result: Any) -> bool:
    """Whether it is an awaitable or a generator, and so what was asked for has not run yet."""
    return inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)
