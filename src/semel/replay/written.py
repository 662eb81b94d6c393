"""What is written down before the first delivery: everything that the checks are held against afterwards."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from semel.errors import ConfigurationError
from semel.replay.description import Description
from semel.replay.masking import masked
from semel.replay.results import Expected


@dataclass(frozen=True)
class Written:
    """The file, and what was in it."""

    path: Path
    sha256: str

    def __str__(self) -> str:
        return f"{self.path} (SHA-256 {self.sha256})"


def write_expectations(
    directory: Path,
    description: Description,
    expected: Sequence[Expected],
    *,
    policy: str,
    versions: Mapping[str, str],
    seed: int,
    code: Mapping[str, str],
    skipped: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> Written:
    """Write them to a dated file of their own, which is never written again.

    ``code`` is what is run, by label; ``skipped`` why a check is not done. Raises `ConfigurationError` where the file
    is there already.
    """
    when = now or datetime.now(UTC)
    content = {
        "job": description.name,
        "written": when,
        "policy": policy,
        "seed": seed,
        "versions": dict(versions),
        "code": dict(code),
        "expected": list(expected),
        "skipped": dict(skipped or {}),
        "description": masked(description),
    }
    text = msgspec.json.format(msgspec.json.encode(content, enc_hook=str), indent=2) + b"\n"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"expected-{description.name}-{when.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.json"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    except FileExistsError:
        raise ConfigurationError(
            f"{path} is there already: what a run expects is written once.",
            holds="Nothing was sent.",
            remedy="Run again, or give another --directory.",
        ) from None
    with open(file, "wb") as opened:  # noqa: PTH123  # a descriptor
        opened.write(text)
        opened.flush()
        os.fsync(file)
    return Written(path, hashlib.sha256(text).hexdigest())
