"""Where it was measured, and with what."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import psycopg

from benchmarks.cluster import Cluster, redis_version
from benchmarks.peers import INSTALLATIONS
from semel.version import __version__


def describe(cluster: Cluster, directory: Path) -> dict[str, str]:
    """The machine, the versions and the cluster's settings, by their names."""
    settings = cluster.settings()
    return {
        "processor": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "system": platform.platform(),
        "file system of the cluster": _file_system(directory),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "semel": f"{__version__} ({_commit()})",
        "psycopg": psycopg.__version__,
        "postgresql": settings.pop("server_version"),
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
        "redis": redis_version() or "none",
        "peers": ", ".join(
            package for each in INSTALLATIONS.values() for package in (*each.python, *each.node)
        ),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(directory: Path) -> str:
    found = subprocess.run(
        ["stat", "--file-system", "--format", "%T", str(directory)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.stdout.strip() or "unknown"


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    )  # fmt: skip
    return found.stdout.strip() or "no commit"
