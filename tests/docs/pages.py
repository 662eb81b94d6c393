"""The documents as tests see them: pages with code blocks, and what an HTML comment says about each.

Comments before a block:

- ``<!-- file: shop.py -->``    the block is written to this file
- ``<!-- background -->``       the command runs until the page ends, and is then stopped with SIGTERM;
  ``<!-- background: BANK_URL -->`` waits until something answers at that variable's URL
- ``<!-- output -->``           the block is what the block before it printed; ``…`` stands for anything
- ``<!-- fails: 1 -->``         the command ends with this exit code
- ``<!-- raises: Name -->``     the Python or Ruby block raises this error
- ``<!-- sketch: why -->``      the block is not run

Comments on their own: ``<!-- wait: SELECT … -->`` waits until the statement answers true; ``<!-- page: embedded -->`` gives
the page the embedded server instead of a database, ``<!-- page: redis -->`` a Redis in ``REDIS_URL``, ``<!-- page: sqs -->``
an SQS server, as boto3 finds it. ``<!-- page: terminal -->``: its shell blocks are typed into one terminal, where folder and
exported variables stay; there are the checkout's ``examples``, and a free port in ``BANK_URL``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    path
    for path in (
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        ROOT / "ruby" / "README.md",
        ROOT / "benchmarks" / "README.md",
        *ROOT.glob("docs/**/*.md"),
    )
    if path.exists()
)
LANGUAGES = frozenset({"python", "ruby", "shell", "sql"})
"""Blocks in these run; text, mermaid and others are for reading."""

_COMMENT = re.compile(r"<!--\s*(?P<word>[a-z]+)(?::\s*(?P<value>.*?))?\s*-->\s*$")
_FENCE = re.compile(r"(?P<margin>\s*)(?P<ticks>`{3,})(?P<language>[a-z]*)\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block, or (without a language) a comment that stands on its own."""

    page: Path
    line: int
    language: str
    text: str
    said: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language in LANGUAGES and "sketch" not in self.said


def read_blocks(page: Path) -> list[Block]:
    """A page's blocks and lone comments, in order."""
    return list(_blocks(page, page.read_text("utf-8").splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    said: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        comment, fence = _COMMENT.match(line), _FENCE.match(line)
        if comment and comment["word"] in ("wait", "page"):
            yield Block(page, number + 1, "", "", {comment["word"]: comment["value"] or ""})
        elif comment:
            said[comment["word"]] = comment["value"] or ""
        elif fence:
            end = next(at for at in range(number + 1, len(lines)) if lines[at].strip() == fence["ticks"])
            body = [text.removeprefix(fence["margin"]) for text in lines[number + 1 : end]]
            yield Block(page, number + 1, fence["language"], "\n".join(body) + "\n", said)
            said, number = {}, end
        elif line.strip():
            said = {}
        number += 1


def matches(shown: str, printed: str) -> bool:
    """Whether this was printed: ``…`` stands for any text, alone on a line for any lines; spaces may differ in number."""
    expression = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == "…" else _line(line) + r"\n"
        for line in shown.strip().splitlines()
    )
    tidy = "".join(" ".join(line.split()) + "\n" for line in printed.strip().splitlines())
    return re.fullmatch(expression, tidy) is not None


def _line(shown: str) -> str:
    return "[^\n]*".join(re.escape(part.strip()) for part in " ".join(shown.split()).split("…"))
