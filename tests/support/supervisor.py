"""A supervisor under test; its options are JSON on the command line, durations in seconds."""

import json
import sys
from datetime import timedelta

from tests.support.deaths import make_watch

from semel.queue.worker.options import WorkerOptions
from semel.queue.worker.supervisor import run_supervisor

if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    for name in ("lease", "stop_grace"):
        if told.get(name) is not None:
            told[name] = timedelta(seconds=told[name])
    if told.get("queues") is not None:
        told["queues"] = tuple(told["queues"])
    command = (sys.executable, "-m", "tests.support.child")
    sys.exit(run_supervisor(WorkerOptions(**told), command, make_watch("supervisor")))
