"""A replay in a process of its own, for a test that kills it: of ``guarded:charge``, in the working directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from semel.replay.description import CalledFunction, Description, GuardPlace, Watch
from semel.replay.running import Options, replay
from semel.replay.staging import declare, project_of, targets_of

here = Path.cwd()
target = os.environ["TARGET"]
description = Description(
    name="charge",
    deliver=CalledFunction(function="guarded:charge"),
    watch=Watch(call="provider.charge", dwell="5 ms"),
    message={"order_id": "{n}"},
    look_alike={"order_id": "{n}"},
    guard=GuardPlace(operation="guarded:charge"),
    rounds=3,
    patience="60 s",
    environment={"RECEIVED": str(here / "received"), "TARGET": target},
)
declare(project_of(here), targets_of(description, {}, guard_database=target))
jobs = str(Path(__file__).parent)
options = Options(directory=here / "out", code=(("", jobs),), only=tuple(sys.argv[1:]))
replay(description, options)
