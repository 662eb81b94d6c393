"""A page as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from semel.note.page import CLOSES, OPENS, Block, Items, Measured, Page, Paragraph, Table

MEASURED: Final = "<!-- semel:measured -->"
END: Final = "<!-- semel:end -->"
_CODE: Final = re.compile(f"{OPENS}(.*?){CLOSES}", re.DOTALL)


def to_markdown(page: Page) -> str:
    """The page's text, with a newline at its end."""
    lines = [page.origin, "", f"# {_inline(page.title)}", ""]
    for section in page.sections:
        lines += [f"## {_inline(section.title)}", ""]
        for block in section.blocks:
            lines += [*_block(block), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph(text=text):
            yield _inline(text)
        case Items(items=items, numbered=numbered):
            for number, item in enumerate(items, 1):
                yield f"{f'{number}.' if numbered else '-'} {_inline(item)}"
        case Table(headings=headings, rows=rows):
            yield _row(headings)
            yield "|" + " --- |" * len(headings)
            yield from map(_row, rows)
        case Measured(blocks=blocks):
            yield MEASURED
            yield ""
            for each in blocks:
                yield from _block(each)
                yield ""
            yield END


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_inline(cell).replace("|", "\\|") for cell in cells) + " |"


def _inline(text: str) -> str:
    return " ".join(_CODE.sub(lambda found: _code(found[1]), text).split("\n"))


def _code(text: str) -> str:
    """A code span whose fence is longer than any run of backticks in it."""
    shown = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence, space = "`" * (longest + 1), " " if "`" in shown else ""
    return f"{fence}{space}{shown}{space}{fence}" if shown else "(empty)"
