"""Loaded by every Python process that a replay starts: wraps the watched call, and then whatever the machine customizes."""

import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load_the_next_one() -> None:
    """The sitecustomize that this one stands in front of."""
    paths = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("SEMEL_REPLAY"):
    from semel_faults import loading  # type: ignore[import-not-found]  # beside this file, on the path

    semel_reporter = loading.install(os.environ["SEMEL_REPLAY"])
_load_the_next_one()
