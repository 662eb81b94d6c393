"""``semel replay``: what it prints and writes, and the exit code that a run stands for."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from semel.cli.group import exit_code
from semel.errors import NotStaging, WorkerDidNotStart

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def test_a_run_that_holds_is_reported_in_every_form(semel: Command, project: Path) -> None:
    words = (
        "--only",
        "three",
        "--only",
        "look",
        "--html",
        "out/a.html",
        "--junit",
        "out/a.xml",
        "--json",
        "out/a.json",
    )
    done = semel("replay", "charge.toml", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ holds" in done.stdout
    assert "Holds: 2 checks, all as expected." in done.stdout
    assert (project / "out" / "a.html").read_text().startswith("<!doctype html>")
    assert ElementTree.parse(project / "out" / "a.xml").getroot().get("tests") == "2"
    read = json.loads((project / "out" / "a.json").read_text())
    assert read["holds"] is True
    assert [each["name"] for each in read["runs"][0]["checks"]] == ["three-deliveries", "look-alikes"]
    written = list((project / "replays").glob("expected-charge-*.json"))
    assert len(written) == 1
    assert str(written[0].name) in read["expectations"]


def test_an_effect_that_happens_twice_is_exit_code_1(semel: Command, project: Path) -> None:
    done = semel("replay", "run", "bare.toml", "--only", "three-deliveries", "--json", "--seed", "7000")
    assert done.returncode == 1, done.stdout + done.stderr
    read = json.loads(done.stdout)
    assert (read["holds"], read["seed"]) == (False, 7000)
    assert read["runs"][0]["checks"][0]["verdict"] == "fails"
    assert (project / "charges.txt").read_text().split() == ["7000"] * 3


def test_what_is_not_staging_is_refused_and_can_be_declared(semel: Command, project: Path) -> None:
    (project / ".semel" / "staging.toml").unlink()
    done = semel("replay", "charge.toml", "--only", "three")
    assert done.returncode == 2
    assert "[not-staging]" in done.stderr
    assert "semel replay charge.toml --staging" in done.stderr
    assert not (project / "charges.txt").exists()
    done = semel("replay", "charge.toml", "--staging")
    assert done.returncode == 0, done.stderr
    assert "function replayed_jobs:charge" in done.stdout
    assert f"sqlite:///{project}/guard.db" in done.stdout
    assert f"sqlite:///{project}/guard.db" in (project / ".semel" / "staging.toml").read_text()
    assert not (project / "charges.txt").exists(), "nothing is run by it"


def test_the_list_sends_nothing(semel: Command, project: Path) -> None:
    done = semel("replay", "charge.toml", "--list")
    assert done.returncode == 0, done.stderr
    assert "skipped: the description has no changed" in done.stdout
    shown = json.loads(semel("replay", "--list", "charge.toml", "--json").stdout)
    assert shown["targets"]["function"] == "function replayed_jobs:charge"
    assert shown["checks"][0]["name"] == "three-deliveries"
    assert not (project / "charges.txt").exists()
    assert not (project / "replays").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("absent.toml",), "There is no file absent.toml"),
        (("charge.toml", "--only", "nothing"), "There is no check 'nothing'"),
        (("charge.toml", "--code", "before=no-such"), "neither a folder nor a revision"),
        (("charge.toml", "--code", "a", "--code", "b"), "no label"),
        (("charge.toml", "--rounds", "0"), "--rounds"),
        (("init", "nowhere"), "There is no nowhere"),
        (("init", "provider.py"), "No job was found"),
    ],
)
def test_wrong_usage(semel: Command, project: Path, words: tuple[str, ...], said: str) -> None:
    done = semel("replay", *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_code_that_cannot_be_loaded_is_said(semel: Command, project: Path) -> None:
    text = (project / "charge.toml").read_text()
    (project / "wrong.toml").write_text(text.replace('"replayed_jobs:charge"', '"nowhere_at_all:charge"'))
    done = semel("replay", "wrong.toml", "--list")
    assert done.returncode == 2, done.stderr
    assert "No module named 'nowhere_at_all'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_that_does_not_load_is_one_error_and_no_verdict(semel: Command, project: Path) -> None:
    (project / "replayed_jobs.py").write_text("import not_installed")
    done = semel("replay", "bare.toml", "--html", "page.html")
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("Error: The worker did not start: ") == 1
    assert "No message was sent to it. [worker-did-not-start]" in done.stderr
    assert "No module named 'not_installed'" in done.stderr
    assert done.stdout == ""
    assert not (project / "page.html").exists()
    assert not (project / "charges.txt").exists()


@pytest.mark.parametrize("option", ["--html", "--junit", "--json", "--directory"])
def test_a_report_that_cannot_be_written_is_said_before_anything_is_sent(
    semel: Command, project: Path, option: str
) -> None:
    (project / "taken").write_text("")
    done = semel("replay", "bare.toml", "--only", "three", option, "taken/report.json")
    assert done.returncode == 2, done.stdout
    assert "taken cannot be used" in done.stderr or "taken/report.json cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "charges.txt").exists()


def test_looking_whether_a_report_can_be_written_leaves_nothing(semel: Command, project: Path) -> None:
    (project / ".semel" / "staging.toml").unlink()
    (project / "old.html").write_text("of yesterday")
    done = semel("replay", "bare.toml", "--html", "old.html", "--junit", "new.xml")
    assert done.returncode == 2, done.stderr
    assert (project / "old.html").read_text() == "of yesterday"
    assert not (project / "new.xml").exists()


def test_what_an_error_stands_for() -> None:
    assert exit_code(WorkerDidNotStart(["celery"], "no broker")) == 3
    absent = str(
        WorkerDidNotStart(["celery"], "Traceback\n  a\nModuleNotFoundError: No module named 'shop'\n")
    )
    assert absent.startswith("The worker did not start: ModuleNotFoundError: No module named 'shop'")
    assert "--code FOLDER" in absent
    assert "Traceback" not in absent
    assert exit_code(NotStaging("Not declared as staging: redis://r/0.")) == 2


def test_json_takes_no_description_for_its_file(semel: Command, project: Path) -> None:
    before = (project / "charge.toml").read_text()
    done = semel("replay", "--list", "--json", "charge.toml")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checks"]
    assert (project / "charge.toml").read_text() == before


def test_init_writes_what_can_be_run(semel: Command, project: Path) -> None:
    done = semel("replay", "init")
    assert done.returncode == 0, done.stderr
    assert "Written: replay-charge.toml" in done.stdout
    assert "replayed_jobs.py:7" in done.stdout
    text = (project / "replay-charge.toml").read_text()
    assert 'call = "provider.charge"' in text
    assert 'operation = "replayed_jobs:charge"' in text
    assert semel("replay", "replay-charge.toml", "--list").returncode == 0
    assert "replay_tests" in (project / "tests" / "test_replay_charge.py").read_text()


def test_init_names_the_folder_that_the_code_is_imported_from(semel: Command, project: Path) -> None:
    (project / "old").mkdir()
    for name in ("replayed_jobs.py", "provider.py"):
        (project / name).rename(project / "old" / name)
    done = semel("replay", "init", "old")
    assert "Read it, then: semel replay replay-charge.toml --code old --list" in done.stdout
    assert semel("replay", "replay-charge.toml", "--code", "old", "--list").returncode == 0
    assert (
        "The test runs the code in old. When the mended code lies in another folder, change CODE"
        in done.stdout
    )
    text = (project / "tests" / "test_replay_charge.py").read_text()
    assert '\nCODE = {"code": str(Path(__file__).parent.parent / "old")}\n' in text
    assert ", code=CODE)" in text


def test_init_takes_a_plain_function_by_its_name(semel: Command, project: Path) -> None:
    done = semel("replay", "init", "--job", "bare")
    assert done.returncode == 0, done.stderr
    text = (project / "replay-bare.toml").read_text()
    assert 'function = "replayed_jobs:bare"' in text
    assert 'none = "nothing guards this job yet"' in text
    assert semel("replay", "replay-bare.toml", "--list").returncode == 0


def test_init_says_that_something_is_still_to_be_filled_in(semel: Command, project: Path) -> None:
    (project / "idle.py").write_text("def idle(order_id): ...\n")
    done = semel("replay", "init", "idle.py", "--job", "idle")
    assert "Fill in what is marked TODO, then: semel replay replay-idle.toml --list" in done.stdout


def test_init_never_writes_over_a_file(semel: Command, project: Path) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "test_replay_charge.py").write_text("mine")
    done = semel("replay", "init", ".")
    assert done.returncode == 2
    assert "tests/test_replay_charge.py is there already." in done.stderr
    assert (project / "tests" / "test_replay_charge.py").read_text() == "mine"
    assert not (project / "replay-charge.toml").exists()


def test_init_lists_several_and_takes_one(semel: Command, project: Path) -> None:
    (project / "tasks.py").write_text(
        "from celery import Celery\nimport provider\napp = Celery()\n"
        "@app.task\ndef pay(order_id): provider.charge(order_id)\n@app.task\ndef mail(user_id): ...\n"
    )
    done = semel("replay", "init", "--json")
    assert [each["name"] for each in json.loads(done.stdout)["jobs"]] == ["charge", "tasks.pay", "tasks.mail"]
    assert not list(project.glob("replay-*"))
    assert semel("replay", "init", "--job", "absent").returncode == 2
    done = semel("replay", "init", "--job", "pay")
    assert done.returncode == 0, done.stderr
    assert 'task = "tasks.pay"' in (project / "replay-pay.toml").read_text()


def test_both_ways_to_say_it_have_help(semel: Command) -> None:
    assert "replay init" in semel("replay", "init", "--help").stdout
    assert "--only" in semel("replay", "run", "--help").stdout
    group = semel("replay", "--help").stdout
    assert "init" in group
    assert "semel replay DESCRIPTION" in group
