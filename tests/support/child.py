"""A child of a worker under test."""

import os
import sys
from pathlib import Path

from tests.support.deaths import RECORD, append, make_watch

from semel.queue.worker.child import main

if __name__ == "__main__":
    append(Path(os.environ[RECORD] + ".children"), str(os.getpid()))
    sys.exit(main(sys.argv[1:], make_watch("child")))
