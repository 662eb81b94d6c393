"""A Lambda function in a process of its own: the event comes on standard input, the answer goes to standard output."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tests.adapters import job

import semel
from semel.adapters.sqs import lambda_handler

once = semel.Once(os.environ["SEMEL_DATABASE_URL"])
handlers = {effect: lambda_handler(job.declare(once, effect)(job.charge)) for effect in job.effects()}


def main() -> None:
    handler: Any = handlers[sys.argv[1]]
    print(json.dumps(handler(json.load(sys.stdin), None)), flush=True)


if __name__ == "__main__":
    main()
