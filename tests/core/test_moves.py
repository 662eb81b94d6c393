"""The vectors that other languages decide by are what this code decides."""

from __future__ import annotations

import json
from importlib import util
from pathlib import Path
from typing import Any

from semel.core.operations import Move, Reply, State

ROOT = Path(__file__).resolve().parent.parent.parent
VECTORS = json.loads((ROOT / "tests" / "moves.json").read_text())


def generator() -> Any:
    spec = util.spec_from_file_location("make_move_vectors", ROOT / "scripts" / "make_move_vectors.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_vectors_are_what_the_code_decides() -> None:
    """If this fails on purpose: scripts/make_move_vectors.py, and the same change in ruby/lib/semel/core/operations.rb."""
    made = generator()
    assert made.make() == VECTORS
    assert made.write(made.make()) == made.FILE.read_text()


def test_every_case_has_an_answer() -> None:
    tables = [
        *VECTORS["begin"].values(),
        *(VECTORS[name] for name in ("found", "failed", "leaves_doubt", "may_resend")),
    ]
    for table in tables:
        cases = list(generator().cases(table["axes"]))
        assert len(cases) == len(table["answers"])
        assert set(table["answers"]) == set(range(len(table["decisions"]))), (
            "no decision is there for nothing"
        )


def test_the_vectors_come_to_every_state_move_and_reply() -> None:
    decisions = [each for table in VECTORS["begin"].values() for each in table["decisions"]]
    decisions += [VECTORS["no_record"], *VECTORS["found"]["decisions"]]
    assert {each["reply"] for each in decisions} == {str(each) for each in Reply}
    moves = {each["move"] for each in decisions} | set(VECTORS["failed"]["decisions"])
    assert moves == {str(each) for each in Move} - {"complete", "extend"}, "these two are decided by nobody"
    first = next(iter(VECTORS["begin"].values()))
    assert {each["state"] for each in first["axes"]["standing"]} == {str(each) for each in State}
