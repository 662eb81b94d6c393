"""Replays as tests, in runs of pytest of their own: one run for all checks, whoever runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semel.replay.staging import declare

pytest_plugins = ["pytester"]

TESTS = """
from semel.testing import replay_tests

test_replay = replay_tests("{name}.toml", only=("three-deliveries", "look-alikes", "changed"))
"""


@pytest.fixture
def in_project(pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project)
    (project / "tests").mkdir()
    return project


def write(project: Path, name: str, text: str) -> Path:
    path = project / "tests" / f"test_{name}.py"
    path.write_text(text.format(name=name))
    return path


def expectations(project: Path) -> int:
    return len(list(project.glob("*/expected-*.json")))


def test_one_run_for_all_checks(pytester: pytest.Pytester, in_project: Path) -> None:
    path = write(in_project, "charge", TESTS)
    result = pytester.runpytest_subprocess(
        str(path), "-v", "-rs", "--rootdir", str(in_project), "--semel-replay-html=pages"
    )
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*test_replay?three-deliveries? PASSED*",
            "*test_replay?the-whole-run? PASSED*",
            "*description has no changed*",
        ]
    )
    assert expectations(in_project) == 1
    assert len(list((in_project / "pages").glob("charge-*.html"))) == 1


def test_what_fails_says_why_and_where_the_page_is(pytester: pytest.Pytester, in_project: Path) -> None:
    path = write(in_project, "bare", TESTS)
    result = pytester.runpytest_subprocess(str(path), "--rootdir", str(in_project))
    result.assert_outcomes(passed=1, skipped=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "three-deliveries: fails.*",
            "*expected exactly 1, counted 3",
            "*had more than 1 effects*",
            "The report: */replays/bare-*.html",
        ]
    )


def test_processes_of_xdist_share_one_run(pytester: pytest.Pytester, in_project: Path) -> None:
    path = write(in_project, "charge", TESTS)
    result = pytester.runpytest_subprocess(str(path), "-n", "2", "--rootdir", str(in_project))
    result.assert_outcomes(passed=3, skipped=1)
    assert expectations(in_project) == 1


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_keeps_the_run_from_being_done_is_said_once(
    pytester: pytest.Pytester, in_project: Path, processes: str
) -> None:
    (in_project / ".semel" / "staging.toml").unlink()
    path = write(in_project, "charge", TESTS)
    result = pytester.runpytest_subprocess(
        str(path), "-rs", "-n", processes, "--rootdir", str(in_project), "-p", "no:cacheprovider"
    )
    result.assert_outcomes(failed=1, skipped=3)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*Not declared as staging*[[]not-staging[]]"])
    result.stdout.fnmatch_lines(["*there was no run: the test of * says why*"])


AGAIN = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    from _pytest.runner import runtestprotocol
    runtestprotocol(item, nextitem=nextitem, log=False)
"""


def test_the_test_that_says_it_fails_again_where_it_is_tried_again(
    pytester: pytest.Pytester, in_project: Path
) -> None:
    (in_project / ".semel" / "staging.toml").unlink()
    (in_project / "tests" / "conftest.py").write_text(AGAIN)
    path = write(in_project, "charge", TESTS)
    result = pytester.runpytest_subprocess(str(path), "--rootdir", str(in_project))
    result.assert_outcomes(failed=1, skipped=3)


def test_a_job_that_does_not_load_is_said_once(pytester: pytest.Pytester, in_project: Path) -> None:
    (in_project / "replayed_jobs.py").write_text("import not_installed")
    path = write(in_project, "bare", TESTS)
    result = pytester.runpytest_subprocess(str(path), "--rootdir", str(in_project), "-rN")
    result.assert_outcomes(failed=1, skipped=3)
    said = result.stdout.str()
    assert "No module named 'not_installed'" in said
    assert said.count("[worker-did-not-start]") == 1
    assert expectations(in_project) == 0


def test_the_fixture_answers_the_run(pytester: pytest.Pytester, in_project: Path) -> None:
    text = """
def test_it(semel_replay):
    run = semel_replay("charge.toml", only=["two-at-once"])
    assert run.holds
    assert run.runs[0].checks[0].evidence.overlapping == 3
"""
    path = write(in_project, "charge", text)
    result = pytester.runpytest_subprocess(str(path), "--rootdir", str(in_project), "--semel-replay-rounds=3")
    result.assert_outcomes(passed=1)
    assert expectations(in_project) == 1


def test_what_init_writes_for_another_folder_runs_from_anywhere(
    pytester: pytest.Pytester, in_project: Path, semel: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tests the folder that it names: first the code before, then the mended one, by that one line."""
    for folder in ("before", "after"):
        (in_project / folder).mkdir()
    for name in ("replayed_jobs.py", "provider.py"):
        text = (in_project / name).read_text()
        (in_project / "after" / name).write_text(text.replace('.parent / "guard', '.parent.parent / "guard'))
        (in_project / "before" / name).write_text(text)
        (in_project / name).unlink()
    assert semel("replay", "init", "before", "--job", "bare").returncode == 0
    path = in_project / "tests" / "test_replay_bare.py"
    written = path.read_text().replace("code=CODE", 'code=CODE, only=("three-deliveries",)')
    monkeypatch.chdir(in_project / "tests")
    declare(in_project, {"a": "function replayed_jobs:bare", "b": "function replayed_jobs:charge"})
    path.write_text(written)
    pytester.runpytest_subprocess(str(path), "--rootdir", str(in_project)).assert_outcomes(failed=2)
    description = in_project / "replay-bare.toml"
    text = description.read_text().replace("replayed_jobs:bare", "replayed_jobs:charge")
    start = text.index("[control]")
    description.write_text(f'{text[:start]}[guard]\noperation = "replayed_jobs:charge"\n')
    path.write_text(written.replace('"before"', '"after"'))
    pytester.runpytest_subprocess(str(path), "--rootdir", str(in_project)).assert_outcomes(passed=2)
