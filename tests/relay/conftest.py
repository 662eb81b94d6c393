"""Brokers for the relay's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.adapters import brokers as shared
from tests.adapters.sqs_servers import SqsServer
from tests.adapters.sqs_servers import shared as shared_sqs
from tests.relay.brokers import Broker, Redis, make_broker
from tests.support.keeping import run_directory


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[[type[Broker]], Broker]]:
    """Makes brokers of the test's own, which it may kill."""
    made: list[Broker] = []

    def make(kind: type[Broker]) -> Broker:
        made.append(make_broker(kind, tmp_path / kind.name))
        return made[-1]

    yield make
    for broker in made:
        broker.close()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A Redis of the module's own; `read` empties it."""
    broker = make_broker(Redis, tmp_path_factory.mktemp("redis"))
    assert isinstance(broker, Redis)
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def rabbit(request: pytest.FixtureRequest) -> shared.Rabbit:
    """The RabbitMQ of the whole run; never stop it."""
    return shared.shared_rabbit(*run_directory(request))


@pytest.fixture(scope="session")
def sqs(request: pytest.FixtureRequest) -> SqsServer:
    """The SQS server of the whole run; never stop it."""
    return shared_sqs("ministack", *run_directory(request))
