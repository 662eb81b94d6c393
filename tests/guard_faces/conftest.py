"""A guard over each database, and a provider that counts what is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.guard.conftest import make_database, mariadb  # noqa: F401 - fixtures
from tests.guard.stored import DIALECTS, Stored

from semel import Once


class Provider:
    """The world outside: every call that reached it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def charge(self, what: Any = None, *, reference: str = "") -> str:
        self.calls.append(what)
        return f"receipt {len(self.calls)}"


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mysql"])
def where(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> tuple[str, Any]:  # noqa: F811
    return request.param, make_database(request.param)


def target_of(where: tuple[str, Any]) -> Any:
    """A place as people give it to `Once`."""
    dialect, place = where
    return place[0].url(place[1]) if dialect == "mysql" else place


@pytest.fixture
def make_once(where: tuple[str, Any]) -> Iterator[Callable[..., Once]]:
    """Makes guards over one database."""
    made: list[Once] = []

    def make(**options: Any) -> Once:
        made.append(Once(target_of(where), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def once(make_once: Callable[..., Once]) -> Once:
    return make_once()


@pytest.fixture
def stored(where: tuple[str, Any]) -> Iterator[Stored]:
    """What is stored; every test begins with nothing."""
    looked = Stored.at(*where)
    names = ("operation_events", "operations")
    for name in names:
        looked.ask(f"DELETE FROM {'semel.' if where[0] == 'postgresql' else 'semel_'}{name}")
    yield looked
    looked.close()


@pytest.fixture
def only(stored: Stored) -> Callable[[], dict[str, Any]]:
    """The one record that there is."""

    def look() -> dict[str, Any]:
        words = DIALECTS[stored.dialect]
        ((key,),) = stored.ask(f"SELECT {words.key} FROM {words.operations}")
        record = stored.record(key)
        assert record is not None
        return record | {"key": key}

    return look
