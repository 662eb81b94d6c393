"""Fixtures of the SQS tests that run in the test's own process: import them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.sqs_local import Effects
from tests.adapters.sqs_rig import server_of
from tests.adapters.sqs_servers import SqsServer
from tests.guard.conftest import make_database
from tests.guard.stored import Stored

import semel
from semel.core.keys import compute_key

__all__ = ["charge", "effects", "make_charge", "make_database", "once", "path", "server", "state_of"]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> SqsServer:
    return server_of("ministack", request)


@pytest.fixture(scope="module")
def path(make_database: Callable[[str], Any]) -> Path:
    """A SQLite file with the guard's tables."""
    found: Path = make_database("sqlite")
    return found


@pytest.fixture
def once(path: Path) -> Iterator[semel.Once]:
    made = semel.Once(path)
    yield made
    made.close()


@pytest.fixture
def effects() -> Effects:
    return Effects()


@pytest.fixture
def charge(once: semel.Once, effects: Effects) -> semel.Guarded[..., None]:
    return make_charge(once, effects)


def make_charge(once: semel.Once, effects: Effects, **options: Any) -> semel.Guarded[..., None]:
    """A guarded job that counts."""
    declared: dict[str, Any] = {"key": "name", "payload": ("amount",), "acting": "explicit"} | options

    @once.operation("charge", **declared)
    def charge(op: semel.Operation, name: str, amount: Decimal = Decimal(1)) -> None:
        effects.begin(name)
        with op.acting():
            effects.act(name)

    return charge


def state_of(path: Path, name: str) -> dict[str, Any] | None:
    """The record of the job of that name."""
    stored = Stored.at("sqlite", path)
    try:
        return stored.record(compute_key(name).digest)
    finally:
        stored.close()
