"""A description and a test for a job that was found; what nobody could tell is marked and must be filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from semel.replay.finding.candidate import Candidate, Parameter, Value

_NUMBER: Final = frozenset({"int", "Decimal", "decimal.Decimal"})
_OPTIONAL: Final = re.compile(r"\s*\|\s*None|Optional\[|\]$")


def short_name(candidate: Candidate) -> str:
    """Its name as files have it: ``shop.tasks.charge_order`` is ``charge-order``."""
    last = re.split(r"[.:]+", candidate.name)[-1]
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", last)
    return re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-") or "job"


def description_of(candidate: Candidate) -> str:
    """The TOML, with a comment on whatever can be chosen."""
    return "\n".join(_lines(candidate)) + "\n"


def test_of(candidate: Candidate, file: str, code: str | None) -> str:
    """A test file that runs it by pytest; ``code`` is the folder of its code, where that is another one."""
    place, more = "", ""
    if code is not None:
        place = (
            "# What is tested. Where the mended code lies in another folder, change it here.\n"
            f'CODE = {{"code": str(Path(__file__).parent.parent / {_quoted(code)})}}\n\n'
        )
        more = ", code=CODE"
    return (
        f'"""{candidate.name} acts once: its messages are delivered again, two at once, and its workers are killed."""\n\n'
        "from pathlib import Path\n\n"
        "from semel.testing import replay_tests\n\n"
        f"{place}"
        "# It needs its database and broker, which must be declared as staging: semel replay --staging\n"
        f'test_replay = replay_tests(Path(__file__).parent.parent / "{file}"{more})\n'
    )


def key_of(candidate: Candidate) -> Parameter | None:
    """The parameter that makes an operation: the guard's key, else what looks like an id, else the first."""
    needed = candidate.parameters
    named = [each for each in needed if each.name == candidate.key]
    ids = [each for each in needed if re.search(r"(?:^|_)(?:id|uuid|key|number|reference|order)$", each.name)]
    return next(iter([*named, *ids, *needed]), None)


def _lines(candidate: Candidate) -> Iterator[str]:
    yield f"# How semel replay delivers {candidate.name} ({candidate.place}). Every field: docs/replay.md."
    yield "# Look first: semel replay FILE --list. In any text ${NAME} is the environment's."
    yield f"name = {_quoted(short_name(candidate))}"
    yield "rounds = 100            # of two workers at once"
    if candidate.way in ("celery", "sqs", "sidekiq"):
        yield '# redelivery = "70 s"   # how long the broker is given to deliver again by itself what a killed worker had'
    yield ""
    yield "[deliver]"
    yield f"by = {_quoted(candidate.way)}"
    for name, value in candidate.deliver.items():
        yield f"{name} = {_value(value)}"
    if candidate.way in ("celery", "callable"):
        yield "# positional = true     # who sends it passes the arguments by position: in the order of message"
    yield ""
    yield from _watch(candidate)
    yield from _message(candidate)
    yield from _count(candidate)
    yield from _guard(candidate)


def _watch(candidate: Candidate) -> Iterator[str]:
    yield "[watch]                 # the call that has the effect"
    first = candidate.watched[0] if candidate.watched else None
    if first is None:
        yield 'call = "TODO: the call that has the effect, such as shop.provider.charge (Ruby: Class#method)"'
    else:
        yield f"call = {_quoted(first.call)}    # a guess: {first.why}"
    for other in candidate.watched[1:4]:
        yield f"# call = {_quoted(other.call)}    # {other.why}"
    for note in candidate.notes:
        yield f"# {note}"
    yield '# http = "https://api.provider.test"   # instead: the address of the outside system, through a proxy'
    yield '# variable = "PROVIDER_URL"            # where the job reads that address'
    yield ""


def _message(candidate: Candidate) -> Iterator[str]:
    key = key_of(candidate)
    yield "[message]               # {n} is the operation's number; synthetic values only"
    if not candidate.parameters:
        yield "TODO = \"TODO: the fields of a message, such as order_id = '{n}'\""
    for each in candidate.parameters:
        comment = "" if each.required else "# "
        yield f"{comment}{each.name} = {_sample(each, is_key=each == key)}"
    yield ""
    yield "[look_alike]            # what differs in a message that looks alike and is another operation"
    if key is not None:
        yield f"{key.name} = {_sample(key, is_key=True)}"
    else:
        yield 'TODO = "TODO: the field that makes the operation"'
    yield ""
    other = next((each for each in candidate.parameters if each != key), None)
    if other is not None:
        yield "# [changed]             # what differs in a message of the same operation with another payload"
        yield f"# {other.name} = {_other(other)}"
        yield ""


def _count(candidate: Candidate) -> Iterator[str]:
    key = key_of(candidate)
    name = key.name if key is not None else "order_id"
    hint = (
        "it writes rows: count them"
        if candidate.writes
        else "better than calls, where there is one: what has arrived"
    )
    yield f"# [count]               # {hint}"
    yield '# by = "sql"'
    yield f'# query = "SELECT count(*) FROM charges WHERE {name} = :{name}"'
    yield '# database = "${DATABASE_URL}"'
    yield ""


def _guard(candidate: Candidate) -> Iterator[str]:
    if candidate.operation is not None:
        yield "[guard]"
        yield f"operation = {_quoted(candidate.operation)}"
        return
    yield "# [guard]               # none was found; semel's own, or another's unique constraint:"
    yield '# operation = "shop.jobs:charge"'
    yield '# table = "processed"'
    yield '# columns = ["message_id"]'
    yield ""
    yield "[control]"
    yield 'none = "nothing guards this job yet"    # with a guard: how the job is delivered without it'


def _sample(parameter: Parameter, *, is_key: bool) -> str:
    kind = _OPTIONAL.sub("", parameter.kind)
    if kind in _NUMBER:
        return '"{n}"' if is_key else "1"
    if kind == "bool":
        return "false"
    if kind == "float":
        return "1.0"
    if kind.endswith(("datetime", "date")):
        return '"2026-01-01T00:00:00Z"' if kind.endswith("datetime") else '"2026-01-01"'
    if kind.endswith("UUID"):
        return '"00000000-0000-4000-8000-{n}"' if not is_key else '"TODO: a UUID made of {n}"'
    if kind.lower().startswith(("list", "tuple", "sequence")):
        return "[]"
    if kind.lower().startswith(("dict", "mapping")):
        return "{}"
    if re.search(r"amount|price|total|cents|count|quantity", parameter.name) and not is_key and kind != "str":
        return "1"
    if "email" in parameter.name:
        return '"replay-{n}@example.test"'
    return '"{n}"' if is_key and kind != "str" else '"replay-{n}"'


def _other(parameter: Parameter) -> str:
    sample = _sample(parameter, is_key=False)
    return {"1": "2", "1.0": "2.0", "false": "true"}.get(sample, '"other-{n}"')


def _value(value: Value) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return f"[{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
