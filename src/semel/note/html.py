"""A page as one self-contained HTML file: no script, nothing loaded from anywhere."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from semel.note.markdown import END, MEASURED
from semel.note.page import CLOSES, OPENS, Block, Items, Measured, Page, Paragraph, Table

_PARTS: Final = re.compile(f"({OPENS}.*?{CLOSES})", re.DOTALL)
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; border-bottom: 1px solid #8884; }
code { font: 13px/1.4 ui-monospace, monospace; background: #8882; padding: .1em .3em; border-radius: 3px;
       overflow-wrap: anywhere; }
h1 code { font-size: inherit; }
table { border-collapse: collapse; margin: .6rem 0; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border: 1px solid #8886; }
th { background: #8881; }
.measured { border-left: 3px solid #8888; padding-left: 1rem; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } }
"""


def to_html(page: Page) -> str:
    """The page as a whole document."""
    lines = [
        "<!doctype html>",
        page.origin,
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(_plain(page.title))}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{_inline(page.title)}</h1>",
    ]
    for section in page.sections:
        lines.append(f"<h2>{_inline(section.title)}</h2>")
        for block in section.blocks:
            lines += _block(block)
    return "\n".join([*lines, "</body></html>"]) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph(text=text):
            yield f"<p>{_inline(text)}</p>"
        case Items(items=items, numbered=numbered):
            kind = "ol" if numbered else "ul"
            yield f"<{kind}>"
            yield from (f"<li>{_inline(item)}</li>" for item in items)
            yield f"</{kind}>"
        case Table(headings=headings, rows=rows):
            yield "<table><thead><tr>" + "".join(f"<th>{_inline(each)}</th>" for each in headings)
            yield "</tr></thead><tbody>"
            for row in rows:
                yield "<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>"
            yield "</tbody></table>"
        case Measured(blocks=blocks):
            yield MEASURED
            yield '<div class="measured">'
            for each in blocks:
                yield from _block(each)
            yield "</div>"
            yield END


def _inline(text: str) -> str:
    parts = _PARTS.split(text)
    return "".join(
        f"<code>{html.escape(part[1:-1])}</code>" if part.startswith(OPENS) else html.escape(part)
        for part in parts
    )


def _plain(text: str) -> str:
    return text.replace(OPENS, "").replace(CLOSES, "")
