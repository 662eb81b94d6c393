"""The documents hold together: links resolve, errors and settings are described, nothing is left unrun in silence."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import LANGUAGES, PAGES, ROOT, matches, read_blocks

import semel
import semel.errors
from semel.core.effects import promise
from semel.queue.app import SettingsOverrides
from semel.queue.declaration import JobDeclaration

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
SKETCHES = 12
"""At most so many blocks are not run."""


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    found = set()
    for line in without_blocks(page.read_text("utf-8")).splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return found


def without_blocks(text: str) -> str:
    return re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.DOTALL | re.MULTILINE)


@every_page
def test_links_resolve(page: Path) -> None:
    broken = []
    for target in LINK.findall(without_blocks(page.read_text("utf-8"))):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(target)
    assert broken == []


@every_page
def test_every_block_says_its_language(page: Path) -> None:
    known = LANGUAGES | {"text", "mermaid", "json"}
    assert [
        block.place for block in read_blocks(page) if not block.said and block.language not in known
    ] == []


def test_few_blocks_are_not_run() -> None:
    sketches = {
        block.place: block.said["sketch"]
        for page in PAGES
        for block in read_blocks(page)
        if "sketch" in block.said
    }
    assert all(sketches.values()), "each says why"
    assert len(sketches) <= SKETCHES, sketches


def test_every_error_code_has_its_section() -> None:
    codes = {
        error.code
        for error in vars(semel.errors).values()
        if isinstance(error, type) and issubclass(error, semel.SemelError)
    }
    assert codes - anchors(ROOT / "docs" / "errors.md") == set()


def test_every_setting_is_described_with_its_default() -> None:
    text = (ROOT / "docs" / "production.md").read_text("utf-8")
    described = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, flags=re.MULTILINE))
    for setting in fields(semel.Settings):
        assert setting.name in described, setting.name
        value, shown = getattr(semel.Settings(), setting.name), described[setting.name].strip()
        if isinstance(value, int):
            assert str(value) == shown, setting.name
        else:
            assert semel.App(**{setting.name: shown}).settings == semel.Settings(), setting.name  # type: ignore[arg-type]
    assert set(SettingsOverrides.__annotations__) == {setting.name for setting in fields(semel.Settings)}


def test_every_option_of_a_job_is_described() -> None:
    text = (ROOT / "docs" / "worker.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+)`", "".join(line for line in text.splitlines() if line.startswith("| `"))))
    assert set(JobDeclaration.__annotations__) | {"context", "transaction"} <= named


def test_every_variable_is_described() -> None:
    text = (ROOT / "docs" / "production.md").read_text("utf-8") + (ROOT / "docs" / "testing.md").read_text(
        "utf-8"
    )
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert {name for name in re.findall(r'"(SEMEL_[A-Z_]+)"', source) if name not in text} == set()


def test_the_readme_comes_to_code_soon_and_stays_short() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    before = re.sub(r"<!--.*?-->", "", text[: text.index("```python")])
    assert len(before.split()) <= 150
    assert len(text.splitlines()) <= 250


def test_the_readme_shows_a_test_for_every_promise() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    section = text[text.index("## What is promised") : text.index("## Install")]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 6
    assert [row for row in rows if "](tests/" not in row] == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a … c", "a  b   c\n", True),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…\nd", "a\nd", True),
        ("a\nd", "a\nb\nd", False),
        ("a.c", "abc", False),
    ],
)
def test_output_is_compared_line_by_line(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same


@pytest.mark.parametrize(
    ("effect", "shown"),
    [
        (semel.Row(), None),
        (semel.ProviderKey(valid_for="24 h"), None),
        (semel.Lookup(print, settle=0), None),
        (semel.Hold(), None),
        (semel.AcceptDuplicate(extra=1), ["1 + extra", "1 or more"]),
        (semel.AcceptMiss(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_table_of_effects_says_what_the_code_says(effect: Any, shown: list[str] | None) -> None:
    text = (ROOT / "docs" / "guard.md").read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| `{type(effect).__name__}("))
    promised = promise(effect)
    expected = shown or [promised.never_more_than, promised.completed_means]
    assert [cell.strip() for cell in row.strip("|").split("|")][2:] == expected


def test_every_test_that_a_page_names_exists() -> None:
    missing = []
    for page in PAGES:
        for path, name in re.findall(r"`(?:tests/)?([\w/]+\.py)::(test_\w+)`", page.read_text("utf-8")):
            file = ROOT / "tests" / path
            if not file.exists() or f"def {name}(" not in file.read_text("utf-8"):
                missing.append(f"{page.name}: {path}::{name}")
    assert missing == []


def test_every_entry_of_the_record_of_failures_is_shown_or_explained() -> None:
    rows = re.findall(
        r"^\| (C?\d+) \| ([^|]+) \| ([^|]+) \|",
        (ROOT / "docs/adr/0006-failure-modes-and-cases.md").read_text("utf-8"),
        flags=re.MULTILINE,
    )
    numbers = [row[0] for row in rows]
    assert numbers[:67] == [str(number) for number in range(1, 68)]
    assert len(numbers) == len(set(numbers)) == 67 + 53
    assert [row[0] for row in rows if "::test_" not in row[2] and len(row[2]) < 40] == []
    named = {int(one) for one in re.findall(r"test_f(\d+)_", "".join(row[2] for row in rows))}
    written = {
        int(one)
        for path in (ROOT / "tests/guard_cases").glob("test_*.py")
        for one in re.findall(r"^def test_f(\d+)_", path.read_text("utf-8"), flags=re.MULTILINE)
    }
    assert written <= named
