"""When deploys happened: a file of times, or a repository's tags."""

from __future__ import annotations

import subprocess
from pathlib import Path

from semel.core.zones import Zone
from semel.errors import ConfigurationError
from semel.repeats.problems import Problems
from semel.repeats.times import Clock

_SECONDS = 60


def read_deploys(path: str, zone: Zone | None) -> list[int]:
    """One time a line, in ms since 1970; words after the time and lines that begin with # are for people."""
    try:
        lines = Path(path).read_text("utf-8-sig", "replace").splitlines()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"--deploys {path!r} cannot be read: {why}.", remedy="Check the path."
        ) from error
    clock = Clock(Problems(), zone)
    return [
        _time_of(line.strip(), clock, number, path)
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


def read_tags(directory: str, pattern: str) -> list[int]:
    """When the tags of a git repository were made, in ms since 1970."""
    command = [
        "git", "-C", directory, "for-each-ref", "--format=%(creatordate:unix)", f"refs/tags/{pattern}",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            f"git could not be run: {error}.", remedy="Give --deploys a file."
        ) from error
    if done.returncode:
        told = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ConfigurationError(
            f"--deploys-git {directory!r} has no tags to read: {told}.",
            remedy="Name a repository's directory.",
        )
    return [int(line) * 1_000 for line in done.stdout.split() if line.isdigit()]


def _time_of(line: str, clock: Clock, number: int, path: str) -> int:
    """Of as many of its first words as make a time."""
    words = line.replace(",", " ").split()
    for count in (3, 2, 1):
        try:
            return clock.read(" ".join(words[:count]), number)
        except (ValueError, OverflowError):
            continue
    raise ConfigurationError(
        f"--deploys {path!r}: line {number} does not begin with a time: {line[:40]!r}.",
        remedy="Write one time a line, such as 2026-01-31T08:00:00+01:00.",
    )
