"""The result that a repeat is answered with. Completion never depends on one that can be stored."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

from semel.core import results
from semel.guard.declaration import Declaration

logger = logging.getLogger("semel.guard")

LONGEST_RESULT: Final = 64 * 1024


def encode_result(result: Any, declaration: Declaration) -> tuple[str | None, bool]:
    """The result as JSON, and whether it had to be dropped."""
    if not declaration.store_result:
        return None, False
    encoded, reason = results.encode_result(result, LONGEST_RESULT)
    if reason:
        logger.warning("%s: its result is not stored: %s", declaration.job_type, reason)
    return None if encoded is None else encoded.decode(), bool(reason)


def decode_result(stored: Any, returns: Any) -> Any:
    """The stored result as the function's return type, where it has one that fits; else as plain JSON."""
    if returns is None or stored is None:
        return stored
    try:
        return msgspec.convert(stored, returns, str_keys=True)
    except (msgspec.ValidationError, TypeError):
        return stored
    except Exception as error:  # the type's own __post_init__ or a hook
        logger.warning(
            "The stored result does not make a %r, and is answered as plain JSON: %s", returns, error
        )
        return stored
