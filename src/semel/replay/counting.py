"""How many effects an operation had: counted at the receiver, or by the watched call's returns."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import quote

import msgspec

from semel.errors import ConfigurationError
from semel.replay.control import ControlRoom
from semel.replay.description import CountHttp, CountSql, Description, Message
from semel.replay.events import Event, Point
from semel.replay.messages import fill
from semel.store.counting import Count, open_count

_ANSWER_WITHIN: Final = 30.0
_REFUSED: Final = 400
_NOT_THERE: Final = 404
_NOTHING: Final = object()
_ENDS: Final = (Point.RETURN, Point.RAISED)


class Counter(Protocol):
    """Counts one operation's effects, as they are now."""

    def count(self, number: int, message: Message) -> int:
        """Of the operation with this number, whose message this is."""
        ...


@dataclass(frozen=True)
class CallsCounter:
    """Calls that returned, and requests that were answered without being refused.

    ``distinct``: of calls with the same arguments one counts, as a provider counts that honours a key.
    """

    room: ControlRoom
    distinct: bool

    def count(self, number: int, message: Message) -> int:
        returns = [each for each in self.room.events(number, Point.RETURN) if _took_effect(each)]
        return len({each.digest for each in returns}) if self.distinct else len(returns)


@dataclass(frozen=True)
class SqlCounter:
    """Committed rows, by a query."""

    ask: Count

    def count(self, number: int, message: Message) -> int:
        return self.ask({"n": number, **message})


@dataclass(frozen=True)
class HttpCounter:
    """What an address answers: a number, or a list's length."""

    url: str
    field: str | None

    def count(self, number: int, message: Message) -> int:
        url = fill(self.url, {name: quote(str(value), safe="") for name, value in _named(number, message)})
        found: Any = _get(url)
        if found is _NOTHING:
            return 0
        for name in self.field.split(".") if self.field else ():
            found = _within(found, name, url)
        if isinstance(found, list):
            return len(found)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise ConfigurationError(
                f"{url} answered {found!r} where effects are counted, which is no number and no list.",
                remedy="Name the place of one in count.field, such as data.total.",
            )
        return int(found)


@contextmanager
def open_counter(description: Description, room: ControlRoom, *, distinct: bool) -> Iterator[Counter]:
    """The counter that a description names. ``distinct`` is for calls alone: others count what is there."""
    match description.count:
        case CountSql(query=query, database=database):
            target = database or os.environ.get("SEMEL_DATABASE_URL")
            if not target:
                raise ConfigurationError(
                    "No database is named to count effects in.",
                    remedy="Give count.database, or set SEMEL_DATABASE_URL.",
                )
            with open_count(target, query) as ask:
                yield SqlCounter(ask)
        case CountHttp(url=url, field=field):
            yield HttpCounter(url, field)
        case _:
            yield CallsCounter(room, distinct)


def refuse_counted(counter: Counter, number: int, message: Message) -> None:
    """Raises ConfigurationError where this operation has effects before anything was delivered, or nobody can tell."""
    found = counter.count(number, message)
    if found:
        raise ConfigurationError(
            f"Before anything is delivered, {found} effects of operation {number} are counted.",
            holds="Nothing was sent.",
            remedy="Count those of one operation, by a field of its message; or begin at another number: --seed",
        )


def find_unreturned(events: Iterable[Event]) -> list[Event]:
    """Entries whose call neither returned nor raised in the same thread of the same process."""
    entered: dict[tuple[int, int], Event] = {}
    unreturned = []
    for event in events:
        here = (event.pid, event.thread)
        if event.point is Point.ENTRY:
            if here in entered:  # a process with this number, again
                unreturned.append(entered[here])
            entered[here] = event
        elif event.point in _ENDS:
            entered.pop(here, None)
    return [*unreturned, *entered.values()]


def _took_effect(event: Event) -> bool:
    return int(event.detail.get("status", 0)) < _REFUSED


def _named(number: int, message: Message) -> Iterator[tuple[str, Any]]:
    yield "n", number
    yield from message.items()


def _get(url: str) -> Any:
    """Nothing where there is no such thing: an address of one operation may begin to be with its effect."""
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"Effects are counted at an address by http or https, not {url!r}.")
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_WITHIN) as answer:  # noqa: S310  # looked at above
            return msgspec.json.decode(answer.read())
    except (OSError, msgspec.DecodeError) as error:
        if isinstance(error, urllib.error.HTTPError) and error.code == _NOT_THERE:
            return _NOTHING
        told = f"{error.code} {error.reason}" if isinstance(error, urllib.error.HTTPError) else str(error)
        raise ConfigurationError(
            f"{url} does not say how many effects there are: {told}", remedy="It must answer JSON."
        ) from error


def _within(found: Any, name: str, url: str) -> Any:
    if isinstance(found, dict) and name in found:
        return found[name]
    if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
        return found[int(name)]
    raise ConfigurationError(f"{url} answered without {name!r}, where effects are counted.")
