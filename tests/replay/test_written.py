"""What a run expects is written once, before it, and holds no credentials."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.replay.runs import before, run_of

from semel.errors import ConfigurationError
from semel.replay import Command, CountSql, Description, Watch
from semel.replay.events import Event, Point
from semel.replay.expectations import Policy, expected
from semel.replay.masking import masked_run
from semel.replay.report.as_json import as_json
from semel.replay.report.html import as_html
from semel.replay.report.junit import as_junit
from semel.replay.results import Evidence, Expected
from semel.replay.written import Written, write_expectations

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def describe(**changes: Any) -> Description:
    return Description(
        **{
            "name": "charge",
            "deliver": Command(command=["charge", "--token=abcdefg", "{order}"]),
            "watch": Watch(
                http="https://me:hunter22@pay.test", answer={"headers": {"Authorization": "Bearer x"}}
            ),
            "message": lambda n: {"order": n},
            "count": CountSql(query="SELECT 1", database="postgresql://me:hunter22@db/shop"),
            "environment": {"PAY_KEY": "sk_live_1"},
        }
        | changes
    )


def write(folder: Path, description: Description) -> Written:
    policy = Policy("hold", "held: a person decides")
    return write_expectations(
        folder,
        description,
        [expected("two-at-once", policy, rounds=100), expected("killed-on-return", policy)],
        policy=policy.words,
        versions={"semel": "0.1.0"},
        seed=7,
        code={"": ". (commit abc)"},
        skipped={"old-claim": "no lease is known"},
        now=WHEN,
    )


def test_it_is_dated_and_whole(tmp_path: Path) -> None:
    written = write(tmp_path / "reports", describe())
    assert written.path.name == "expected-charge-20260304T050607.000000Z.json"
    assert hashlib.sha256(written.path.read_bytes()).hexdigest() == written.sha256
    read = json.loads(written.path.read_text())
    written_first = msgspec.convert(read["expected"][0], type=Expected)
    assert written_first == expected("two-at-once", Policy("hold", "held: a person decides"), rounds=100)
    assert (read["expected"][0]["least"], read["expected"][0]["most"], read["expected"][0]["rounds"]) == (
        1,
        1,
        100,
    )
    assert (read["policy"], read["seed"], read["written"]) == (
        "held: a person decides",
        7,
        "2026-03-04T05:06:07Z",
    )
    assert read["skipped"] == {"old-claim": "no lease is known"}
    assert read["description"]["deliver"]["by"] == "command"
    assert read["description"]["message"].startswith(f"{__name__}:describe.<locals>")


def test_it_is_never_overwritten(tmp_path: Path) -> None:
    written = write(tmp_path, describe())
    before = written.path.read_bytes()
    with pytest.raises(ConfigurationError, match="is there already"):
        write(tmp_path, describe(rounds=1))
    assert written.path.read_bytes() == before


def test_no_credentials_are_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "k-9f8e7d6c")
    description = describe(message={"order": "{n}", "password": "pw-1", "note": "uses k-9f8e7d6c"})
    text = write(tmp_path, description).path.read_text()
    for secret in ("hunter22", "abcdefg", "sk_live_1", "Bearer x", "pw-1", "k-9f8e7d6c"):
        assert secret not in text, secret
    assert "${SHOP_API_KEY}" in text
    assert "pay.test" in text
    assert "PAY_KEY" in text


@pytest.mark.parametrize(
    "text",
    [
        "redis://:hunter2@pay.test/0",
        "redis://:p@hunter2@pay.test/0",
        '{"password": "hunter2"}',
        "{'api_key': 'hunter2'}",
        "Authorization: Bearer hunter2",
        "password=hunter2",
        "the key is k-9f8e7d6c, the worker's sk_test_55",
    ],
)
def test_no_credentials_are_in_what_reports_show(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "k-9f8e7d6c")
    event = Event(point=Point.RAISED, pid=1, at=1.0, detail={"error": text})
    evidence = Evidence(logs=[text], notes=[text], unfinished=text, events=[event])
    check = msgspec.structs.replace(before().checks[0], reasons=(text,), evidence=evidence)
    run = run_of(msgspec.structs.replace(before(), checks=(check,)))
    shown = masked_run(run, describe(environment={"PAY_KEY": "sk_test_55"}))
    for report in (as_json(shown).decode(), as_html(shown), as_junit(shown).decode()):
        for secret in ("hunter2", "k-9f8e7d6c", "sk_test_55"):
            assert secret not in report
