"""The versions of the code that a run compares: folders as they are, and revisions of git in folders of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from semel.errors import ConfigurationError
from semel.replay.folders import own_folder


@dataclass(frozen=True)
class Code:
    """One version, where it lies now."""

    label: str
    directory: Path
    shown: str
    """As it was given, with the commit it came to, and whether anything in it is not committed."""


@contextmanager
def laid_out(code: Sequence[tuple[str, str]], *, here: Path | None = None) -> Iterator[tuple[Code, ...]]:
    """These (label, path or revision) as folders, in order. Revisions are of the repository of ``here``.

    A revision's folder is a worktree of git's, and is removed at the end whatever happened.
    """
    start = here or Path.cwd()
    _refuse_labels([label for label, _ in code])
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(_one(label, given, start)) for label, given in code or [("", str(start))]
        )


def parse_code(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """``LABEL=PATH_OR_REVISION``, as the command line has it; without a label where there is one."""
    found = []
    for word in words:
        label, equals, given = word.partition("=")
        if not equals and len(words) == 1:
            label, given = "", word
        elif not (label and given):
            raise ConfigurationError(
                f"--code is {word!r}: no label.",
                remedy="Write LABEL=PATH_OR_REVISION, such as --code before=HEAD~1 --code after=.",
            )
        found.append((label, given))
    return tuple(found)


def _refuse_labels(labels: Sequence[str]) -> None:
    """They become names of folders, so two that differ in case alone are one."""
    if len({label.casefold() for label in labels}) < len(labels):
        raise ConfigurationError(
            f"Two versions of the code have one label: {', '.join(labels)}.",
            remedy="Label them apart, such as --code before=v1 --code after=.",
        )
    for label in labels:
        if label and not re.fullmatch(r"\w[\w.-]{0,99}", label):
            raise ConfigurationError(
                f"{label!r} is no label of a version of the code.",
                holds="Nothing was sent.",
                remedy="It is letters, digits, -, _ and ., such as before (it becomes the name of a folder).",
            )


@contextmanager
def _one(label: str, given: str, start: Path) -> Iterator[Code]:
    path = (start / Path(given).expanduser()).resolve()
    if path.is_dir():
        yield Code(label, path, _shown_path(given, path))
        return
    commit = _git(start, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}")
    if commit is None:
        raise ConfigurationError(
            f"{given!r} is neither a folder nor a revision of git that is known in {start}.",
            holds="Nothing was sent.",
            remedy="Name a folder, a commit, a branch or a tag; a shallow clone has few of them.",
        )
    with _worktree(start, commit) as root:
        below = root / (_git(start, "rev-parse", "--show-prefix") or "")
        subject = _git(start, "show", "--no-patch", "--format=%h %cs", commit)
        yield Code(label, below if below.is_dir() else root, f"{given} (commit {subject or commit})")


@contextmanager
def _worktree(start: Path, commit: str) -> Iterator[Path]:
    with own_folder(Path(tempfile.gettempdir())) as folder:
        root = folder / "code"
        try:
            done = _run(start, "worktree", "add", "--detach", "--force", str(root), commit)
            if done.returncode:
                raise ConfigurationError(f"git could not lay out {commit}: {done.stderr.strip()}.")
            yield root
        finally:
            _run(start, "worktree", "remove", "--force", str(root))
            shutil.rmtree(root, ignore_errors=True)
            _run(start, "worktree", "prune")


def _shown_path(given: str, path: Path) -> str:
    commit = _git(path, "show", "--no-patch", "--format=%h %cs", "HEAD")
    if commit is None:
        return f"{given} (no commit)"
    dirty = _git(path, "status", "--porcelain", "--", ".")
    return f"{given} (commit {commit}{', with changes that are not committed' if dirty else ''})"


def _git(folder: Path, *words: str) -> str | None:
    """What git answers; None where it refuses, or is not there."""
    done = _run(folder, *words)
    return done.stdout.strip() if done.returncode == 0 else None


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """git in this folder; variables that a hook of git's sets would lead it elsewhere."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *words]
    try:
        return subprocess.run(  # noqa: S603
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "git is not installed")
