"""`semel fit`: asked in the terminal, answered from a file, filled in from code."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from tests.fit.test_verdict import FITS
from typer.testing import CliRunner

from semel.cli.main import build
from semel.fit.files import read_answers, to_template
from semel.fit.questions import QUESTIONS, UNKNOWN, is_asked

SHOP = """
import semel
once = semel.Once("shop.db")

@once.operation("charge", key="order_id", effect=semel.ProviderKey(valid_for="2 h", then=semel.Lookup(print, settle="1 min")))
def charge(op, order_id: int): ...

@once.operation("mail", key="order_id", effect=semel.AcceptDuplicate())
def mail(op, order_id: int): ...

@once.operation("news", key="order_id", effect=semel.AcceptMiss())
def news(op, order_id: int): ...

@once.operation("held", key="order_id", effect=semel.Hold())
def held(op, order_id: int): ...

@semel.Once("shop.db", secret=semel.Secret(b"0123456789abcdef")).operation(
    "text", key="order_id", effect=semel.Lookup(print, settle="2 min"), longest_run="3 min", lease="9 min"
)
def text(op, order_id: int): ...

@once.operation("rows", key="order_id", effect=semel.Row())
def rows(op, order_id: int): ...
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "fit_shop.py").write_text(SHOP)
    yield tmp_path
    sys.modules.pop("fit_shop", None)


def call(*words: str, typed: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(build(), ["fit", *words], input=typed, prog_name="semel")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def store(name: str, **changed: str) -> str:
    Path(name).write_text(to_template(FITS | changed, as_json=name.endswith("json")), "utf-8")
    return name


@pytest.mark.parametrize("name", ["answers.toml", "answers.json"])
def test_answers_from_a_file(name: str) -> None:
    code, out, _ = call("--answers", store(name))
    assert code == 0
    assert out.startswith("It fits, with the policy provider_key.")
    assert '@once.operation("charge-order", key="…", effect=semel.ProviderKey(valid_for="24 h"' in out
    assert "- A message can come 14 days later, the provider keeps its key for 1 day" in out


def test_what_is_not_answered_is_named_as_the_file_has_it() -> None:
    code, out, _ = call("--answers", store("a.toml", key_stays="unknown"))
    assert code == 1
    assert "and after each deploy? (key_stays) [not-known]" in out


def test_each_reason_to_stop_is_printed_with_what_would_change_it() -> None:
    code, out, _ = call("--answers", store("a.toml", identifier="delivery", staging="no"))
    assert code == 1
    assert out.startswith("Stop.")
    assert out.count("What would change it:") == 2
    assert "[identifier-delivery]" in out
    assert "[staging-no]" in out


def test_json_holds_the_verdict_and_the_answers() -> None:
    code, out, _ = call("--answers", store("a.json", policy="hold"), "--json")
    found = json.loads(out)
    assert (code, found["fits"], found["policy"], found["chosen"]) == (0, True, "provider_key", "hold")
    assert found["answers"]["identifier"] == "stable"
    code, out, _ = call("--answers", store("a.json", policy=UNKNOWN), "--json")
    assert code == 1
    assert [reason["code"] for reason in json.loads(out)["reasons"]] == ["policy-not-chosen"]


def test_questions_are_asked_in_the_terminal_and_again_where_the_answer_is_none() -> None:
    asked = [question for question in QUESTIONS if is_asked(question, FITS)]
    typed = [FITS[question.id] for question in asked]
    typed.insert(1, "perhaps")
    code, out, err = call(typed="\n".join(typed) + "\n")
    assert code == 0, err
    assert "It fits" in out
    assert "no answer" in err
    for question in QUESTIONS:
        assert (question.why in err) == (question in asked), question.id
        assert (question.example in err) == (question in asked)


def test_an_empty_answer_is_not_known() -> None:
    code, out, _ = call("--json", typed="\n" * 40)
    assert code == 1
    assert set(json.loads(out)["answers"].values()) == {UNKNOWN}


def test_what_the_code_says_is_filled_in() -> None:
    code, out, _ = call("--job", "fit_shop:charge", "--json", typed="\n" * 40)
    found = json.loads(out)["answers"]
    assert code == 1, "what no code says is still to be answered"
    expected = {
        "job": "charge",
        "database": "sqlite",
        "provider_key": "yes",
        "provider_window": "2 h",
        "lookup": "yes",
        "lookup_settle": "1 min",
        "policy": "provider_key",
        "longest_run": "1 min",
    }
    asked = {name: answer for name, answer in expected.items() if name in found}
    assert asked.keys() >= {"job", "database", "policy", "longest_run"}
    assert {name: found[name] for name in asked} == asked


DECLARED = {
    "charge": {
        "provider_key": "yes",
        "provider_window": "2 h",
        "lookup": "yes",
        "lookup_settle": "1 min",
        "policy": "provider_key",
    },
    "mail": {"duplicate_ok": "yes", "policy": "accept_duplicate"},
    "news": {"miss_ok": "yes", "policy": "accept_miss"},
    "held": {},
    "text": {
        "lookup": "yes",
        "lookup_settle": "2 min",
        "policy": "lookup",
        "personal": "yes",
        "longest_run": "3 min",
    },
    "rows": {"effect": "rows", "policy": "row"},
}


@pytest.mark.parametrize("name", DECLARED)
def test_every_answer_that_the_code_gives(name: str) -> None:
    assert call("--job", f"fit_shop:{name}", "--write-answers", "a.json")[0] == 0
    found = {key: answer for key, answer in read_answers(Path("a.json")).items() if answer != UNKNOWN}
    expected = {"job": name, "key_plain": "yes", "database": "sqlite", "longest_run": "1 min"}
    assert found == expected | DECLARED[name]


def test_a_files_answer_goes_before_what_the_code_says() -> None:
    """Whether what is declared is true, people know."""
    code, out, _ = call(
        "--job", "fit_shop:charge", "--answers", store("a.json", provider_window="3 min"), "--json"
    )
    found = json.loads(out)
    assert (code, found["answers"]["provider_window"], found["answers"]["database"]) == (
        0,
        "3 min",
        "postgresql",
    )
    Path("some.json").write_text('{"identifier": "stable"}')
    found = json.loads(call("--job", "fit_shop:charge", "--answers", "some.json", "--json")[1])
    assert found["answers"]["provider_window"] == "2 h", "what the file leaves out"


def test_the_template_asks_everything_and_is_read_back() -> None:
    assert call("--job", "fit_shop:rows", "--write-answers", "a.toml")[0] == 0
    text = Path("a.toml").read_text("utf-8")
    found = tomllib.loads(text)
    assert list(found) == [question.id for question in QUESTIONS]
    assert (found["effect"], found["policy"], found["identifier"]) == ("rows", "row", UNKNOWN)
    assert all(question.why in text and question.example in text for question in QUESTIONS)
    assert read_answers(Path("a.toml")) == found
    assert call("--write-answers", "a.toml")[0] == 2, "it is there already"
    assert call("--write-answers", "a.json")[0] == 0
    assert set(read_answers(Path("a.json")).values()) == {UNKNOWN}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--answers", "missing.toml"], "cannot be read"),
        (["--answers", "bad.toml"], "is no TOML"),
        (["--answers", "bad.json"], "is no JSON"),
        (["--answers", "list.json"], "no answers by name"),
        (["--answers", "other.toml"], "no question"),
        (["--job", "nowhere:x"], "no module"),
        (["--write-answers", "no/such/a.toml"], "cannot be written"),
    ],
)
def test_wrong_usage(words: list[str], said: str) -> None:
    Path("bad.toml").write_text("= 1")
    Path("bad.json").write_text("{")
    Path("list.json").write_text("[]")
    Path("other.toml").write_text('colour = "red"')
    code, _, err = call(*words)
    assert code == 2
    assert said in err
