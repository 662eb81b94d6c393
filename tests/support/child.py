"""A child of a worker under test."""

import os
import sys
from functools import partial
from pathlib import Path

from tests.support.appending import append
from tests.support.deaths import RECORD, make_watch

from semel.queue.worker import engine
from semel.queue.worker.child import main

MARKED = "SEMEL_TEST_MARKED"
"""Set where claims are to go from marks from the second sweep on, however fast the sweeps are."""

if __name__ == "__main__":
    append(Path(os.environ[RECORD] + ".children"), str(os.getpid()))
    if MARKED in os.environ:
        engine.Lanes = partial(engine.Lanes, slow=0.0)  # type: ignore[misc, assignment]
    sys.exit(main(sys.argv[1:], make_watch("child")))
