"""Whether a written note is current: what code decides is compared, what was measured is not."""

from __future__ import annotations

import difflib
import re
from typing import Final

from semel.note.html import to_html
from semel.note.markdown import END, MEASURED, to_markdown
from semel.note.page import Page

_MEASURED: Final = re.compile(re.escape(MEASURED) + r".*?" + re.escape(END), re.DOTALL)


def compare(written: str, current: str, *, name: str) -> str:
    """The difference as a unified diff, empty where there is none. Line ends and trailing blanks do not count."""
    before, after = _decided(written), _decided(current)
    lines = difflib.unified_diff(
        before, after, f"{name} (as written)", f"{name} (as the code is now)", lineterm=""
    )
    return "\n".join(lines)


def _decided(text: str) -> list[str]:
    lines = _MEASURED.sub(f"{MEASURED}\n{END}", text).splitlines()
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    return kept


def compare_to(name: str, written: str, page: Page) -> str:
    """The difference of a written note from a page, in the form that the note has."""
    current = to_html(page) if "<!doctype html>" in written[:200].lower() else to_markdown(page)
    return compare(written, current, name=name)
