"""Both kinds of claim count in the server's log, its parts added up, and nothing else does."""

from __future__ import annotations

import pytest

from benchmarks.measures.snapshot import durations
from semel.sql import Catalogue


def logged(statement: str, part: str, milliseconds: float) -> str:
    text = Catalogue("semel").text(statement, limit="20", turns="4").bare
    return f"2026-01-01 00:00:00 UTC [71] LOG:  duration: {milliseconds} ms  {part}: {text}\n"


@pytest.mark.parametrize("claim", ["queue/claim", "queue/claim_marked"])
def test_a_claim_is_the_sum_of_its_parts(claim: str) -> None:
    log = logged(claim, "bind _pg3_1", 0.25) + logged(claim, "execute _pg3_1", 0.5)
    assert durations(log + logged("queue/settle", "execute _pg3_2", 7.0) + log) == [0.75, 0.75]
