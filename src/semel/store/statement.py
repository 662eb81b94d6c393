"""What the store's operations are made of: they yield statements and take rows; they do no input or output themselves."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

Row = tuple[Any, ...]
Rows = Sequence[Row]
Answer = TypeVar("Answer")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement to execute: the name of its file, its parameters, and the literals its text is made with.

    ``first`` names another one that the server runs before it, in one message and one transaction: a client that is frozen
    is never between the two. Each has a snapshot of its own; the parameters are of both, the rows of the second.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    literals: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    first: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows to store with COPY, where the driver can; ``columns`` of ``table`` in the catalogue's schema.

    ``pieces`` are whole lines of COPY's text format, many at a time; they are asked for once, while the server works.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    pieces: Iterable[str]


Steps = Generator["Statement | Copy", Rows, Answer]


@dataclass(frozen=True, slots=True)
class Operation(Generic[Answer]):
    """One piece of work on the database: one transaction, or a savepoint inside the caller's.

    ``steps`` makes the generator anew for each try. ``alone`` says that it is a single statement, which is a
    transaction by itself and needs no savepoint; or several that commit one by one.
    """

    name: str
    steps: Callable[[], Steps[Answer]]
    alone: bool = False
