"""Two operations with similar data have two effects."""

from __future__ import annotations

import itertools
import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from tests.guard_crash.recorder import post
from tests.guard_crash.world import World

numbers = itertools.count(1)
COMPOSED = unicodedata.normalize("NFC", "café")
DECOMPOSED = unicodedata.normalize("NFD", "café")
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "invoice and line": ({"key": (12, 3)}, {"key": (1, 23)}),
    "invoice and line as text": ({"key": ("12", "3")}, {"key": ("1", "23")}),
    "one text": ({"key": ("invoice 12 line 3",)}, {"key": ("invoice 1 line 23",)}),
    "equal amounts": ({"key": (1, Decimal("9.50"))}, {"key": (2, Decimal("9.50"))}),
    "number and text": ({"key": (12,)}, {"key": ("12",)}),
    "case": ({"key": ("ORDER-a",)}, {"key": ("order-A",)}),
    "trailing space": ({"key": ("order",)}, {"key": ("order ",)}),
    "composed and decomposed": ({"key": (COMPOSED,)}, {"key": (DECOMPOSED,)}),
    "accent": ({"key": ("cafe",)}, {"key": (COMPOSED,)}),
    "scope's case": ({"key": (1,), "scope": "Acme"}, {"key": (1,), "scope": "acme"}),
    "scope's trailing space": ({"key": (1,), "scope": "acme"}, {"key": (1,), "scope": "acme "}),
    "scope's accent": ({"key": (1,), "scope": COMPOSED}, {"key": (1,), "scope": DECOMPOSED}),
    "scope and job type": (
        {"key": (1,), "scope": "a", "job_type": "b-c"},
        {"key": (1,), "scope": "a-b", "job_type": "c"},
    ),
    "job type's case": ({"key": (1,), "job_type": "Charge"}, {"key": (1,), "job_type": "charge"}),
    "job type's trailing space": ({"key": (1,), "job_type": "pay"}, {"key": (1,), "job_type": "pay "}),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_5_look_alikes_have_two_effects(world: World, pair: str) -> None:
    name = f"pair-{next(numbers)}"
    for told in (*PAIRS[pair], *PAIRS[pair]):
        options = {"job_type": "charge", "scope": ""} | told
        job_type, key = options["job_type"], options["key"]
        with world.once.claim(f"{job_type}", name, *key, scope=options["scope"], acting="explicit") as op:
            if not op.is_repeat:
                with op.acting():
                    post(world.port, "charge", name=name, reference=op.reference, honours=True)
    assert world.recorder.charges[name] == 2
    assert len(set(world.recorder.references[name])) == 2
