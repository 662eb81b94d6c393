"""A note as structure: sections of paragraphs, lists and tables, which Markdown and HTML are written from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

OPENS: Final = "\ue000"
CLOSES: Final = "\ue001"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list; numbered where the order counts."""

    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What changes from day to day; a check of the note leaves it out."""

    blocks: tuple[Paragraph | Items | Table, ...]


Block: TypeAlias = Paragraph | Items | Table | Measured


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole note; ``origin`` is how it was asked for, so that it can be asked for again."""

    title: str
    origin: str
    sections: tuple[Section, ...]


def code(value: object) -> str:
    """A name or a value of the user's, within a text: shown as it is, and never taken as markup."""
    return OPENS + str(value).replace(OPENS, "").replace(CLOSES, "") + CLOSES
