"""Whether a written note is current: the command, and the assertion for users' tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
from tests.note.conftest import SHOP
from typer.testing import CliRunner

import semel
from semel.cli.main import build
from semel.note.checking import compare
from semel.note.markdown import END, MEASURED
from semel.testing import assert_note_is_current

CHANGED = SHOP.replace('payload=("amount",)', 'payload=("amount", "note")')


def call(*words: str, **environment: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(build(), list(words), env=environment, prog_name="semel")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(params=["--output", "--html"])
def written(request: pytest.FixtureRequest, shop: ModuleType) -> Path:
    """A note in either form."""
    name = "note.md" if request.param == "--output" else "note.html"
    example = '{"order_id": 7, "amount": 100}'
    told = ("--longest-redelivery", "40 days", "--example", example)
    code, _, err = call("note", "shop:charge_order", request.param, name, *told)
    assert code == 0, err
    return Path(name)


def test_a_note_is_current_until_the_code_changes(
    written: Path, make_module: Callable[[str], ModuleType]
) -> None:
    assert call("note", "--check", str(written)) == (0, f"{written} is current.\n", "")
    assert_note_is_current(written)
    make_module(CHANGED)
    code, out, err = call("note", "--check", str(written))
    assert code == 1
    assert "ignored" in out
    assert "in the fingerprint" in out
    assert "not current" in err
    with pytest.raises(AssertionError, match="in the fingerprint"):
        assert_note_is_current(written)


def test_a_change_of_the_text_by_hand_is_found(written: Path) -> None:
    written.write_text(written.read_text("utf-8").replace("exactly 1", "about 1"), "utf-8")
    assert call("note", "--check", str(written))[0] == 1


def test_line_ends_of_another_system_do_not_count(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b"\n", b"\r\n"))
    assert call("note", "--check", str(written))[0] == 0


def measure(database_url: str, seconds: int) -> None:
    """A run of that length."""
    once = semel.Once(database_url)
    with once.claim("charge-order", seconds):
        pass
    once.close()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE semel.operations SET claimed_at = completed_at - make_interval(secs => %s) WHERE label = %s",
            (seconds, str(seconds)),
        )


def test_measured_runs_stand_in_the_note_and_are_not_compared(written: Path, database_url: str) -> None:
    form = "--output" if written.suffix == ".md" else "--html"
    measure(database_url, 20)
    call("note", "shop:charge_order", form, str(written), "--database", database_url)
    text = written.read_text("utf-8")
    assert "20 s; covered: a claim holds for 5 min" in text
    assert text.index(MEASURED) < text.index("20 s; covered") < text.index(END)
    assert_note_is_current(written)
    measure(database_url, 30)
    code, out, err = call("note", "--check", str(written), "--database", database_url)
    assert (code, out, err) == (0, f"{written} is current.\n", "")


def test_a_lease_that_no_longer_covers_the_runs_is_told(written: Path, database_url: str) -> None:
    measure(database_url, 301)
    code, out, err = call("note", "--check", str(written), SEMEL_DATABASE_URL=database_url)
    assert (code, out) == (1, "")
    assert "no longer covers" in err
    code, out, _ = call("note", "shop:charge_order", "--database", database_url)
    assert code == 0
    assert "NOT covered: a claim holds for 5 min only" in out
    assert call("note", "--check", str(written))[0] == 0, "without a database, only what code decides"


def test_no_measurement_is_said(shop: ModuleType, database_url: str) -> None:
    assert "no database was asked" in call("note", "shop:mail")[1]
    assert "no attempt acted" in call("note", "shop:mail", "--database", database_url)[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["note"], "No job was named"),
        (["note", "shop:unguarded"], "not guarded"),
        (["note", "shop:nothing"], "is not there"),
        (["note", "shop:mail", "--example", "{"], "no JSON"),
        (["note", "shop:mail", "--example", "[1]"], "no JSON object"),
        (["note", "--check", "missing.md"], "cannot be read"),
        (["note", "--check", "shop.py"], "no note that semel wrote"),
        (["note", "shop:mail", "--output", "no/such/folder.md"], "cannot be written"),
        (["note", "shop:mail", "--module", "nowhere"], "Importing nowhere failed"),
        (["note", "shop:mail", "--longest-redelivery", "soon"], "not a duration"),
    ],
)
def test_wrong_usage(shop: ModuleType, words: list[str], said: str) -> None:
    code, _, err = call(*words)
    assert code == 2
    assert said in err


def test_the_assertion_says_what_is_missing(
    shop: ModuleType, make_module: Callable[[str], ModuleType]
) -> None:
    with pytest.raises(AssertionError, match="There is no note"):
        assert_note_is_current("note.md")
    Path("note.md").write_text("# hand-written", "utf-8")
    with pytest.raises(AssertionError, match="no note that semel wrote"):
        assert_note_is_current("note.md")
    call("note", "shop:missed", "--output", "note.md")
    make_module(
        SHOP.replace("def missed", "def renamed")
        .replace(" missed", " renamed")
        .replace("(missed", "(renamed")
    )
    with pytest.raises(AssertionError, match="not there any more"):
        assert_note_is_current("note.md")


def test_what_is_between_the_marks_is_left_out_and_nothing_else() -> None:
    before = f"a\n{MEASURED}\n1\n{END}\nb\n"
    assert compare(before, before.replace("1", "2\n3"), name="n") == ""
    assert compare(before, before.replace("b", "c"), name="n") != ""
    assert compare(before, before.replace(END, ""), name="n") != ""
