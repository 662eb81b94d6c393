"""The SQS adapter under the contract, on fauxqs: another implementation, which takes a stale receipt handle as SQS does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.contract import *  # noqa: F403
from tests.adapters.sqs_rig import SqsRig, expire_mid_run, make_rig, server_of
from tests.guard.conftest import make_database

__all__ = ["make_database"]


@pytest.fixture
def rig(
    make_database: Callable[[str], Any], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[SqsRig]:
    server = server_of("fauxqs", request)
    with make_rig(server, make_database("postgresql"), tmp_path, rounds=10) as made:
        yield made


def test_a_stale_receipt_that_is_accepted_deletes_nothing(rig: SqsRig) -> None:
    expire_mid_run(rig, 10)
