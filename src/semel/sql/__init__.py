"""The SQL of semel: one statement a file, named by its verb; `Catalogue` reads them with a schema's name put in.

A file may hold four kinds of placeholder: ``{schema}``, the quoted schema; ``{limit}`` and other literals, integers or
quoted names that a statement is made with; ``{folder/name}``, what several statements have in common, in a file of its own;
and ``:name``, a parameter, which the drivers turn into their own style.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources

from semel.errors import ConfigurationError

SCHEMA_VERSION = 4
"""The newest schema version that this code was written for."""

_BY_DIALECT = ("guard", "replay", "shared")
"""Folders with one folder a dialect."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SHARED = re.compile(r"\{([a-z_]+/[a-z_]+)\}")
_TOKENS = re.compile(
    r"""(?P<comment>--[^\n]*\n?|/\*.*?\*/)
      | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
      | (?P<parameter>(?<![:\w]):(?P<name>[a-z_]\w*))""",
    re.VERBOSE | re.DOTALL,
)


def quote_name(name: str) -> str:
    """A schema's or table's name, quoted. Only lower-case letters, digits and underscores pass."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a usable name in the database.",
            remedy="Use lower-case letters, digits and underscores, at most 63, not starting with a digit.",
        )
    return f'"{name}"'


@dataclass(frozen=True)
class Text:
    """One statement's text, in the styles that drivers want. Comments are left out."""

    name: str
    raw: str

    @cached_property
    def bare(self) -> str:
        """Without comments; parameters still as ``:name``, which SQLAlchemy's ``text()`` takes."""
        return f"/* semel {self.name} */ {_replace(self.raw, lambda name: f':{name}')}"

    @cached_property
    def named(self) -> str:
        """``%(name)s``, for psycopg and Django."""
        escaped = _replace(self.raw.replace("%", "%%"), lambda name: f"%({name})s")
        return f"/* semel {self.name} */ {escaped}"

    @cached_property
    def numbered(self) -> tuple[str, tuple[str, ...]]:
        """``$1`` … and the parameters' names in that order, for asyncpg."""
        order: list[str] = []

        def number(name: str) -> str:
            if name not in order:
                order.append(name)
            return f"${order.index(name) + 1}"

        text = _replace(self.raw, number)
        return f"/* semel {self.name} */ {text}", tuple(order)


def _replace(text: str, style: object) -> str:
    assert callable(style)

    def one(match: re.Match[str]) -> str:
        if match.group("comment") is not None:
            return ""
        if match.group("parameter") is not None:
            return str(style(match.group("name")))
        return match.group(0)

    return _TOKENS.sub(one, text).strip()


@dataclass(frozen=True)
class Catalogue:
    """Every statement by name, for one schema. Reads each file once; hold one per application."""

    schema: str = "semel"
    dialect: str = "postgresql"
    """Which of ``guard/postgresql``, ``guard/mysql`` and ``guard/sqlite`` the guard's statements come from."""
    _texts: dict[tuple[str, tuple[tuple[str, str], ...]], Text] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        quote_name(self.schema)

    def text(self, name: str, **literals: str) -> Text:
        """The statement called ``name`` (such as ``queue/claim``), made with the given literals."""
        key = (name, tuple(sorted(literals.items())))
        found = self._texts.get(key)
        if found is None:
            found = Text(name, self.fill(read(f"{self._path(name)}.sql"), **literals))
            self._texts[key] = found
        return found

    def _path(self, name: str) -> str:
        folder, _, rest = name.partition("/")
        return f"{folder}/{self.dialect}/{rest}" if folder in _BY_DIALECT else name

    def fill(self, raw: str, **literals: str) -> str:
        """``raw`` with what it shares, the schema and the literals put in."""
        whole = _SHARED.sub(lambda found: read(f"{self._path(found[1])}.sql"), raw)
        filled = whole.replace("{schema}", quote_name(self.schema))
        for name, literal in literals.items():
            filled = filled.replace(f"{{{name}}}", literal)
        return filled


def read(path: str) -> str:
    """The text of one file under ``semel/sql``."""
    return resources.files("semel.sql").joinpath(path).read_text(encoding="utf-8")
