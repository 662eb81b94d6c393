"""The guard on Celery: one decorator under ``@app.task``, or a base class for tasks."""

from semel.adapters.celery.guarding import find_guarded, guard
from semel.adapters.celery.resender import CeleryResender
from semel.adapters.celery.task import GuardedTask

__all__ = ["CeleryResender", "GuardedTask", "find_guarded", "guard"]
