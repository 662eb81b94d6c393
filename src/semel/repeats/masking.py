"""References as they may be shown."""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum


class Mask(StrEnum):
    """How much of a reference is shown."""

    NONE = "none"
    HASH = "hash"
    PARTIAL = "partial"


def mask(reference: str, how: Mask, key: str = "") -> str:
    """``hash``: the same for the same reference (and key); ``partial``: its ends, a third of it at most."""
    if how is Mask.HASH:
        digest = hmac.new(
            key.encode(), reference.encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()
        return f"#{digest[:16]}"
    if how is Mask.PARTIAL:
        ends = min(4, len(reference) // 6)
        return f"{reference[:ends]}…{reference[len(reference) - ends :]}"
    return reference
