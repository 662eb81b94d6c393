"""The gem's code is as its rules say: rubocop with ruby/.rubocop.yml, whose limits are those of the Python code."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from semel.version import __version__

ROOT = Path(__file__).parent.parent.parent


def test_rubocop_has_nothing_to_say() -> None:
    rubocop = shutil.which("rubocop")
    if rubocop is None:
        if os.environ.get("CI"):
            pytest.fail("rubocop is not installed: apt-get install rubocop")
        pytest.skip("rubocop is not installed (Debian: apt-get install rubocop)")
    ours = [".", *(str(path) for path in (ROOT / "src").rglob("*.rb"))]
    others = [str(path) for path in (ROOT / "tests").rglob("*.rb")]
    for options in (["--config", ".rubocop.yml", *ours], others):
        done = subprocess.run(
            [rubocop, "--cache", "false", "--format", "emacs", *options],
            cwd=ROOT / "ruby",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_gem_has_the_version_of_the_package() -> None:
    text = (ROOT / "ruby" / "lib" / "semel" / "version.rb").read_text("utf-8")
    assert f'VERSION = "{__version__}"' in text


def test_a_built_gem_has_its_statements(tmp_path: Path) -> None:
    """It works away from the repository, where the Python package's files are not beside it."""
    if shutil.which("gem") is None:
        pytest.skip("RubyGems is not installed")
    subprocess.run([str(ROOT / "ruby" / "build.sh"), str(tmp_path)], check=True, capture_output=True)
    gem = f"semel-{__version__}"
    subprocess.run(["gem", "unpack", f"{gem}.gem"], cwd=tmp_path, check=True, capture_output=True)
    script = """
        folder = Semel::Store::Statements::FOLDERS.find { |each| Dir.exist?(each) }
        %w[postgresql mysql sqlite].each { |dialect| Semel::Store::Statements.new(dialect)["act"] }
        print folder
    """
    done = subprocess.run(
        ["ruby", "-I", str(tmp_path / gem / "lib"), "-r", "semel", "-e", script],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == str(tmp_path / gem / "lib" / "semel" / "sql")
    copies = (tmp_path / gem / "lib/semel/sql/guard").rglob("*.sql")
    assert {path.relative_to(tmp_path / gem / "lib/semel/sql"): path.read_bytes() for path in copies} == {
        path.relative_to(ROOT / "src/semel/sql"): path.read_bytes()
        for path in (ROOT / "src/semel/sql/guard").rglob("*.sql")
    }
