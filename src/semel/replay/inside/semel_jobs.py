"""Enqueues jobs of the user's application, and says what else its database has."""

from __future__ import annotations

import sys
from typing import Any

from semel.core.states import Status
from semel.errors import NotFound, WrongState
from semel.operate.acts import cancel
from semel.queue.app import App
from semel.replay.inside.lines import Answers, load, serve
from semel.store.run import run
from semel.store.statement import Operation
from semel.store.views import count_queues, find_job

_OVER = (Status.DONE, Status.CANCELLED, Status.FAILED, Status.HELD)


class Enqueuing:
    """One kind of an application."""

    def __init__(self, app: App, kind: str) -> None:
        self._app = app
        self._job = app.jobs[kind]
        self._sent: list[int] = []

    def enqueue(self, told: dict[str, Any]) -> dict[str, Any]:
        """Store one job, committed by itself."""
        stored = self._job.using(unique_key=told.get("unique_key")).enqueue(**told["message"])
        self._sent.append(stored.id)
        return {"id": stored.id, "created": stored.created}

    def pending(self, told: dict[str, Any]) -> int:
        """How many of the jobs that were sent are not over."""
        waiting = [job_id for job_id in self._sent if self._status(job_id) not in _OVER]
        self._sent = waiting
        return len(waiting)

    def foreign(self, told: dict[str, Any]) -> list[str]:
        """Jobs of others that wait or run."""
        seen = self._ask(count_queues())
        return [
            f"queue {each.queue}: {each.due + each.delayed + each.retrying} jobs wait, {each.running + each.expired} run"
            for each in seen.queues
            if each.due + each.delayed + each.retrying + each.running + each.expired
        ]

    def clear(self, told: dict[str, Any]) -> None:
        """End what was sent and is not over."""
        for job_id in self._sent:
            try:
                self._ask(cancel(job_id, who="semel replay", why="the check is over"))
            except (NotFound, WrongState):
                continue
        self._sent = []

    def target(self, told: dict[str, Any]) -> str:
        """The database, as it is given; whoever shows it leaves the password out."""
        return self._app.database.url()

    def _status(self, job_id: int) -> Status:
        found = self._ask(find_job(job_id))
        return Status.DONE if found is None else found.job.status

    def _ask(self, operation: Operation[Any]) -> Any:
        with self._app.database.session(None) as session:
            return run(operation, session)


def main() -> None:
    def make() -> Answers:
        name, kind = sys.argv[1:]
        enqueuing = Enqueuing(load(name), kind)
        asked = ("enqueue", "pending", "foreign", "clear", "target")
        return {each: getattr(enqueuing, each) for each in asked}

    serve(make)


if __name__ == "__main__":
    main()
