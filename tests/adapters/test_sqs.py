"""The SQS adapter under the contract of all adapters, on ministack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.contract import *  # noqa: F403
from tests.adapters.rig import Rig
from tests.adapters.sqs_rig import make_rig, server_of
from tests.guard.conftest import make_database

__all__ = ["make_database"]


@pytest.fixture
def rig(make_database: Callable[[str], Any], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    server = server_of("ministack", request)
    with make_rig(server, make_database("postgresql"), tmp_path, rounds=100) as made:
        yield made
