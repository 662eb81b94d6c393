"""Requests and answers as JSON lines on standard input and output."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

Answers = Mapping[str, Callable[[dict[str, Any]], Any]]


def serve(make: Callable[[], Answers]) -> None:
    """Answer each request by its ``ask``. What the code prints, also while ``make`` loads it, goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answers = make()
    for line in sys.stdin:
        told = json.loads(line)
        try:
            answer: dict[str, Any] = {"answer": answers[told.pop("ask")](told)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


def load(name: str) -> Any:
    """What ``module:attribute`` names; the working directory is searched first."""
    import importlib

    if "" not in sys.path and str(os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found
