"""A cluster for the benchmarks, with semel and pgbench only: nothing is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.cluster import running_cluster
from benchmarks.driving import Bench
from benchmarks.installing import Environments
from benchmarks.peers import INSTALLATIONS
from semel.embedded import THROWAWAY_SETTINGS


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    directory: Path = tmp_path_factory.mktemp("benchmarks")
    left_out = dict.fromkeys(INSTALLATIONS, "nothing is installed here")
    with running_cluster(directory, **THROWAWAY_SETTINGS) as cluster:
        yield Bench(cluster, None, Environments(directory), 0.01, left_out)
