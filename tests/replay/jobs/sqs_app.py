"""The consumer of the job that JOB names, in a queue of SQS: ``guarded``, or ``broken`` as BROKEN says."""

from __future__ import annotations

import importlib
import os

from semel.adapters.sqs import Consumer

charge = importlib.import_module(os.environ.get("JOB", "guarded")).charge
consumer = Consumer(os.environ["QUEUE"], charge, concurrency=1, wait=1)
