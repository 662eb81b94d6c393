"""The names of ``semel`` itself: what they are, and that nothing is loaded before one is asked for."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import semel
from semel import exports

LATE = ("psycopg", "msgspec", "asyncio", "semel.store", "semel.queue", "semel.guard")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "imported", ["semel", "semel.version", "semel.errors", "semel.testing.plugin", "semel.cli.main"]
)
def test_an_import_loads_nothing_that_it_does_not_need(imported: str) -> None:
    """pytest's plugin is imported in every run of pytest where semel is installed."""
    known = "pytest" if imported.startswith("semel.testing") else "sys"
    told = run(
        f"import sys, {known}; before = set(sys.modules); import {imported}; "
        f"print(*(set(sys.modules) - before) & set({LATE!r}))"
    )
    assert told == ""


@pytest.mark.parametrize("name", exports.__all__)
def test_each_name_is_there_and_stays(name: str) -> None:
    assert getattr(semel, name) is getattr(exports, name)
    assert name in vars(semel)


def test_the_public_names_are_the_listed_ones() -> None:
    assert list(exports.__all__) == sorted(exports.__all__, key=_as_sorted)
    assert dir(semel) == sorted(semel.__all__)
    assert semel.__all__ is exports.__all__
    assert run("import semel; print(len(dir(semel)))") == str(len(exports.__all__))
    star = run("from semel import *; print(*sorted(set(globals()) & {'App', 'Once', 'DONE', '__version__'}))")
    assert star == "App DONE Once __version__"


def _as_sorted(name: str) -> tuple[int, str]:
    """Constants, classes, the rest: as ruff sorts ``__all__``."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return (kind, name)


def test_what_is_pickled_is_found_again_where_nothing_is_loaded_yet() -> None:
    assert pickle.loads(pickle.dumps(semel.Backoff(base=3))) == semel.Backoff(base=3)
    pickled = pickle.dumps((semel.Backoff(base=3), semel.App, semel.DONE))
    told = run(f"import pickle; print(*pickle.loads({pickled!r}))")
    assert told == f"{semel.Backoff(base=3)} {semel.App} {semel.DONE}"


def test_parts_are_there_once_the_names_are() -> None:
    """As they were where all was loaded at once: ``semel.errors`` without an import of its own."""
    assert run("import semel; print(semel.errors.SemelError is semel.SemelError)") == "True"


def test_a_name_that_is_not_there_is_said() -> None:
    with pytest.raises(AttributeError, match="module 'semel' has no attribute 'Nope'"):
        _ = semel.Nope
    assert (
        run("import semel, sys; print(hasattr(semel, '__wrapped__'), 'psycopg' in sys.modules)")
        == "False False"
    )


def test_whoever_checks_types_sees_them(tmp_path) -> None:
    code = tmp_path / "user.py"
    code.write_text("import semel\nsemel.App\nsemel.__version__\nsemel.Nope\n", "utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file",
            "",
            "--cache-dir",
            str(tmp_path),
            str(code),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("error:") == 1, done.stdout
    assert 'Module has no attribute "Nope"' in done.stdout
