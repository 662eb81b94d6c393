"""Write tests/moves.json: what every language that decides on operations must decide (src/semel/core/operations.py).

    python scripts/make_move_vectors.py           write the file
    python scripts/make_move_vectors.py --check   say whether it is what the code decides

A table says what is the same in all of its cases (``fixed``) and what differs (``axes``): its cases are the product of the
axes, the last one turning fastest. ``answers`` names, for each case, one of ``decisions``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final

from semel.core.effects import AcceptDuplicate, AcceptMiss, Answer, Effect, Hold, Lookup, ProviderKey, Row
from semel.core.operations import (
    Decision,
    Limits,
    Move,
    Outcome,
    Record,
    State,
    begin,
    failed,
    found,
    leaves_doubt,
    may_resend,
)

FILE: Final = Path(__file__).resolve().parent.parent / "tests" / "moves.json"
RUN: Final = timedelta(seconds=60)
LOOKUP: Final = Lookup(find=print, settle=30, looks=3, backoff=10)
EFFECTS: Final[dict[str, Effect]] = {
    "row": Row(),
    "hold": Hold(),
    "lookup": LOOKUP,
    "provider_key": ProviderKey(valid_for=3600),
    "provider_key then lookup": ProviderKey(valid_for=3600, then=LOOKUP),
    "accept_duplicate": AcceptDuplicate(),
    "accept_duplicate 2": AcceptDuplicate(extra=2),
    "accept_miss": AcceptMiss(),
}
"""What other languages make of these words is in their own tests: lookups settle for 30 s, look 3 times, and wait 10 s."""

PLAIN: Final = {
    "state": "claimed",
    "outcome": None,
    "revision": 1,
    "claim": 1,
    "mine": False,
    "same_payload": True,
    "lease_left": -1.0,
    "acting": True,
    "unsure_for": None,
    "reference": "r",
    "generation": 1,
    "reference_age": 100.0,
    "unsure": 0,
    "takeovers": 0,
    "looks": 0,
    "extra_used": 0,
    "committed_midway": False,
    "result": None,
    "result_dropped": False,
    "last_error": None,
    "message_kept": False,
}
STATES: Final = [
    *({"state": each} for each in ("claimed", "released", "held")),
    *({"state": "completed", "outcome": str(each)} for each in Outcome),
]
EVERY: Final = list(EFFECTS)
YES_NO: Final = [True, False]

BEGIN: Final[dict[str, dict[str, list[Any]]]] = {
    "every state and every effect": {
        "effect": EVERY,
        "standing": STATES,
        "mine": YES_NO,
        "same_payload": YES_NO,
        "payload_known": YES_NO,
        "lease_left": [5.0, 0.0, -1.0],
        "acting": YES_NO,
    },
    "stale: what comes before the policy": {
        "effect": EVERY,
        "acting": YES_NO,
        "committed_midway": YES_NO,
        "unsure": [0, 2, 3, 4],
        "takeovers": [0, 4, 5, 6],
        "limits": [{"max_unsure": 3, "max_takeovers": 5}, {"max_unsure": 4, "max_takeovers": 6}],
    },
    "stale: the policy": {
        "effect": EVERY,
        "acting": YES_NO,
        "reference_age": [100.0, 3539.0, 3540.0, 9000.0],
        "looks": [0, 2, 3],
        "extra_used": [0, 1, 2],
        "standing": [
            {"lease_left": -10.0},
            {"lease_left": -30.0},
            {"lease_left": -500.0, "unsure_for": 10.0},
            {"lease_left": -1.0, "unsure_for": 31.0},
        ],
    },
    "stale: how it ended": {
        "effect": ["row", "hold"],
        "unsure": [0, 1],
        "unsure_for": [None, 5.0],
        "last_error": [
            None,
            "",
            "\n",
            "E: boom",
            "E: two\nlines",
            "E: a\r\nb",
            "E: x\u2028y",
            "E: " + "\u00e9" * 300,
        ],
    },
    "mine: its acknowledgement was lost": {
        "effect": EVERY,
        "mine": [True],
        "lease_left": [5.0, -1.0],
        "acting": YES_NO,
        "takeovers": [0, 1, 5],
        "unsure_for": [None, 40.0],
        "reference_age": [100.0, 3540.0],
        "same_payload": YES_NO,
    },
}
FOUND: Final = {"answer": [str(each) for each in Answer], "looks": [0, 1, 2, 3, 4]}
FAILED: Final = {"acting": YES_NO, "not_done": YES_NO, "in_doubt": YES_NO}
DOUBT: Final = {"move": [str(each) for each in Move], "acting": YES_NO, "takeovers": [0, 1]}
RESEND: Final = {"effect": EVERY, "reference_age": [0.0, 3539.0, 3540.0, 3541.0]}


def record(given: dict[str, Any]) -> Record:
    """The record of a case: the plain one, less what the case says."""
    known = {each.name for each in fields(Record)}
    values = {**PLAIN, **given.get("standing", {}), **{k: v for k, v in given.items() if k in known}}
    values["state"] = State(values["state"])
    values["outcome"] = None if values["outcome"] is None else Outcome(values["outcome"])
    return Record(**values)


def told(decision: Decision) -> dict[str, Any]:
    """A decision as other languages write it; times in seconds."""
    plain = {each.name: getattr(decision, each.name) for each in fields(Decision)}
    plain["wait"] = None if decision.wait is None else decision.wait.total_seconds()
    return {name: str(value) if name in ("move", "reply") else value for name, value in plain.items()}


def decide_begin(given: dict[str, Any]) -> Any:
    decision = begin(
        record(given),
        EFFECTS[given["effect"]],
        longest_run=RUN,
        limits=Limits(**given.get("limits", {})),
        payload_known=given.get("payload_known", True),
    )
    return told(decision)


def cases(axes: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """The product of the axes, the last one turning fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def table(axes: dict[str, list[Any]], decide: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    decisions: list[Any] = []
    answers = []
    for case in cases(axes):
        decision = decide(case)
        if decision not in decisions:
            decisions.append(decision)
        answers.append(decisions.index(decision))
    return {"axes": axes, "decisions": decisions, "answers": answers}


def make() -> dict[str, Any]:
    return {
        "about": "The guard's decisions. Cases of a table: the product of its axes, the last one turning fastest; "
        "'standing' sets several fields of the record; "
        "fields that no axis names are those of 'record'. answers: indexes into decisions.",
        "longest_run": RUN.total_seconds(),
        "record": PLAIN,
        "no_record": told(begin(None, Hold(), longest_run=RUN, limits=Limits())),
        "begin": {name: table(axes, decide_begin) for name, axes in BEGIN.items()},
        "found": table(FOUND, lambda case: told(found(LOOKUP, record(case), Answer(case["answer"])))),
        "failed": table(FAILED, lambda case: str(failed(**case))),
        "leaves_doubt": table(DOUBT, lambda case: leaves_doubt(record(case), Move(case["move"]))),
        "may_resend": table(
            RESEND, lambda case: may_resend(record(case), EFFECTS[case["effect"]], longest_run=RUN)
        ),
    }


def write(vectors: dict[str, Any]) -> str:
    """JSON with one line for each axis, each decision and each list of answers, so that people can read it."""
    lines: list[str] = []

    def keep(value: Any) -> str:
        lines.append(json.dumps(value))
        return f"line {len(lines) - 1}"

    def by_line(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        if "answers" not in part:
            return {name: by_line(value) for name, value in part.items()}
        return {
            "axes": {name: keep(values) for name, values in part["axes"].items()},
            "decisions": [keep(decision) for decision in part["decisions"]],
            "answers": keep(part["answers"]),
        }

    text = json.dumps(by_line(vectors), indent=1)
    return re.sub(r'"line ([0-9]+)"', lambda match: lines[int(match[1])], text) + "\n"


def main() -> int:
    text = write(make())
    if "--check" in sys.argv[1:]:
        return 0 if FILE.exists() and FILE.read_text() == text else 1
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
