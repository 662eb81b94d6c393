"""HTML of plain values: everything is escaped, unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """HTML that is safe to put into HTML."""

    __slots__ = ()


def tag(name: str, *content: object, **attributes: str) -> Markup:
    """An element; ``class_`` is its class. What is no `Markup` is escaped."""
    written = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{join(content)}</{name}>")


def join(content: Iterable[object]) -> Markup:
    """One after the other."""
    return Markup("".join(each if isinstance(each, Markup) else _escaped(each) for each in content))


def table(headings: Iterable[object], rows: Iterable[Iterable[object]], *, class_: str = "") -> Markup:
    """A table with its headings; a cell that is a ``td`` already is taken as it is."""
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in headings)))
    body = tag("tbody", *(tag("tr", *map(_cell, row)) for row in rows))
    return tag("table", head, body, class_=class_) if class_ else tag("table", head, body)


def facts(pairs: Iterable[tuple[object, object]]) -> Markup:
    """Names with their values."""
    rows = (tag("tr", tag("th", name, scope="row"), _cell(value)) for name, value in pairs)
    return tag("table", tag("tbody", *rows), class_="facts")


def _cell(value: object) -> Markup:
    return value if isinstance(value, Markup) and value.startswith("<td") else tag("td", value)


def _escaped(value: object) -> str:
    """Letters that are no text (control characters) are shown as what they are not."""
    text = "".join(each if each.isprintable() or each == "\n" else "�" for each in str(value).expandtabs(4))
    return escape(text)
