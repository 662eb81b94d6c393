"""Two versions of the code are laid out, and nothing of them stays."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from semel.errors import ConfigurationError
from semel.replay.code import laid_out, parse_code


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "app").mkdir(parents=True)
    git(root, "init", "-q")
    git(root, "config", "user.name", "You")
    git(root, "config", "user.email", "you@example.com")
    for text in ("old", "new"):
        (root / "app" / "job.py").write_text(text)
        git(root, "add", ".")
        git(root, "commit", "-qm", text)
        git(root, "tag", text)
    return root


def test_revisions_are_laid_out_in_order_and_removed(repository: Path) -> None:
    with laid_out([("before", "old"), ("after", "new")], here=repository / "app") as found:
        assert [each.label for each in found] == ["before", "after"]
        assert [(each.directory / "job.py").read_text() for each in found] == ["old", "new"]
        assert found[0].shown.startswith(f"old (commit {git(repository, 'rev-parse', '--short', 'old')} ")
        folders = [each.directory for each in found]
    assert not any(folder.exists() for folder in folders)
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_they_are_removed_whatever_happens(repository: Path) -> None:
    seen: list[Path] = []
    with pytest.raises(KeyboardInterrupt):
        with laid_out([("before", "old")], here=repository) as (code,):
            seen.append(code.directory)
            (code.directory / "app" / "job.py").write_text("changed by the job")
            raise KeyboardInterrupt
    assert not seen[0].exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not list((repository / ".git").glob("worktrees/*"))


def test_a_folder_is_taken_as_it_is(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with laid_out([("after", ".")], here=repository) as (code,):
        assert code.directory == repository
        assert "not committed" not in code.shown
    (repository / "app" / "job.py").write_text("newer")
    with laid_out([], here=repository) as (code,):
        assert (code.label, code.directory) == ("", repository)
        assert code.shown.endswith("with changes that are not committed)")


def test_variables_of_a_hook_do_not_lead_elsewhere(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    with laid_out([("before", "old")], here=repository) as (code,):
        assert (code.directory / "app" / "job.py").read_text() == "old"


@pytest.mark.parametrize("given", ["absent", "--output=x", "HEAD~9"])
def test_what_is_neither_is_refused(repository: Path, given: str) -> None:
    with pytest.raises(ConfigurationError, match="neither a folder nor a revision"):
        with laid_out([("before", given)], here=repository):
            pass


def test_a_folder_without_git(tmp_path: Path) -> None:
    with laid_out([("", "code")], here=_made(tmp_path / "code").parent) as (code,):
        assert code.shown == "code (no commit)"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_labels() -> None:
    assert parse_code([]) == ()
    assert parse_code(["before=v1", "after=."]) == (("before", "v1"), ("after", "."))
    assert parse_code(["v1"]) == (("", "v1"),)
    for words in (["v1", "v2"], ["=x"], ["a="]):
        with pytest.raises(ConfigurationError, match="no label"):
            parse_code(words)
    with pytest.raises(ConfigurationError, match="one label"):
        with laid_out([("a", "."), ("A", ".")]):
            pass
    for label in ("../x", "a/b", ".", "<script>"):
        with pytest.raises(ConfigurationError, match="no label of a version"):
            with laid_out([(label, ".")]):
                pass
