"""The order of events: people sign up, a mail server refuses, a worker is killed, a dead letter is re-queued."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from semel.cli.demonstration.example import LOCATION, MAIL_VARIABLE, SPEED, SPEED_VARIABLE, Example
from semel.cli.demonstration.figures import DeadLetter, Notes, Sources, View, look, look_at, users_by_job
from semel.cli.demonstration.mail_server import MailServer
from semel.cli.demonstration.promises import PromiseBroken
from semel.cli.demonstration.screen import Screen
from semel.cli.demonstration.stage import Stage
from semel.cli.demonstration.worker import WorkerProcess, worker_command, worker_environment
from semel.core.durations import describe
from semel.core.report import JobSummary
from semel.core.states import Status
from semel.store.drivers.psycopg3 import PsycopgSession

PEOPLE: Final = (
    *("Ada", "Agnes", "Alan", "Barbara", "Donald", "Dorothy", "Edsger", "Evelyn", "Frances", "Grace"),
    *("Hedy", "Joan", "John", "Karen", "Katherine", "Ken", "Margaret", "Mary", "Radia", "Tony"),
)
UNDECIDED: Final = "Donald"
"""Changes his mind: his sign-up is rolled back."""
UNREACHED: Final = "Grace"
"""The mail server refuses every message to her, until her mailbox is opened."""
REQUEUE: Final = "UPDATE semel.jobs SET status = 'pending', attempts = 0 WHERE id = %s"

DONE_BEFORE_KILL: Final = 4
RUNNING_AT_KILL: Final = 3
TIME_LIMIT: Final = 120.0
"""Seconds after which something must be wrong; it takes about 20."""
_LOOK_EVERY: Final = 0.1
_GLANCE: Final = 0.005
_LAST_STATEMENTS: Final = 0.1
"""Seconds for what the killed worker had sent to the database to end there."""


class ChangedMind(Exception):
    """What ends the transaction that is rolled back."""


@dataclass
class Story:
    """One demonstration, told on a screen. ``tell`` plays it and answers what there is to count."""

    stage: Stage
    example: Example
    mail: MailServer
    screen: Screen
    session: PsycopgSession
    notes: Notes = field(default_factory=Notes)
    began: float = field(default_factory=time.monotonic)
    workers: int = 0

    def tell(self) -> Sources:
        self._introduce()
        self._sign_up()
        with self._worker() as first:
            self._kill_at_work(first)
        with self._worker() as second:
            self._take_over(second)
            self._finish(second)
            self.notes.exit_code = second.stop()
        self.screen.say("all jobs are done; worker 2 was told to stop (SIGTERM), and did")
        users = self.example.list_users()
        view = look(self.session)
        owners = users_by_job(self.session, view, users)
        return Sources(view=view, owners=owners, users=users, record=self.mail.record, notes=self.notes)

    @property
    def lease(self) -> float:
        """Seconds."""
        seconds: float = self.example.jobs.app.settings.lease.total_seconds()
        return seconds

    def _introduce(self) -> None:
        retry = self.example.jobs.welcome_email.retry
        waits = [retry.backoff.delay(attempt, lambda: 0.0) for attempt in range(1, 4)]
        self.screen.say(f"PostgreSQL {self.stage.version} runs in {self.stage.folder}, of this demo's own")
        self.screen.say(
            f"a mail server on 127.0.0.1:{self.mail.port} refuses half of the attempts at random "
            f"(the same way again: --seed {self.mail.record.seed})"
        )
        self.screen.say(
            f"time runs {SPEED} times faster: lease {self.lease:g} s; retries after "
            f"{', '.join(map(describe, waits))} … at most {describe(retry.backoff.cap)}, half of it random, "
            f"{retry.max_attempts} attempts"
        )

    def _sign_up(self) -> None:
        notes = self.notes
        with self.example.jobs.connect() as connection:
            for name in PEOPLE:
                email = address(name)
                notes.signed_up += 1
                try:
                    with connection.transaction():
                        self.example.sign_up(connection, name, email)
                        if name == UNDECIDED:
                            raise ChangedMind
                except ChangedMind:
                    notes.rolled_back = email
        self.mail.record.closed.add(address(UNREACHED))
        view = look(self.session)
        self.screen.say(
            f"{notes.signed_up} people sign up, each in one transaction with its job; {UNDECIDED}'s is rolled "
            f"back: {len(self.example.list_users())} users, {len(view.jobs)} jobs"
        )

    @contextmanager
    def _worker(self) -> Iterator[WorkerProcess]:
        self.workers += 1
        told = {SPEED_VARIABLE: str(SPEED), MAIL_VARIABLE: f"127.0.0.1:{self.mail.port}"}
        environment = worker_environment(self.example.folder, told)
        log = self.stage.folder / f"worker-{self.workers}.log"
        with WorkerProcess(worker_command(self.stage.url, LOCATION), environment, log) as worker:
            self.screen.say(f"worker {self.workers} starts (process {worker.pid})")
            yield worker

    def _kill_at_work(self, worker: WorkerProcess) -> None:
        """At the worst moment: several jobs run, and one message was just accepted and not yet noted."""
        notes = self.notes
        self._wait(worker, "jobs to be done while others run", self._is_worst_moment)
        unaware = len(self.mail.record.unaware)
        notes.killed_at = time.monotonic()
        notes.killed = tuple(worker.kill())
        time.sleep(_LAST_STATEMENTS)
        notes.running_at_kill = frozenset(job.id for job in look(self.session).having(Status.RUNNING))
        self.screen.say(
            f"kill -9 for worker {self.workers}, processes {' and '.join(map(str, notes.killed))}: "
            f"{len(notes.running_at_kill)} jobs ran, {unaware} of them with a message accepted and not noted"
        )

    def _is_worst_moment(self, view: View) -> bool:
        done, running = len(view.having(Status.DONE)), len(view.having(Status.RUNNING))
        if done < DONE_BEFORE_KILL or running < RUNNING_AT_KILL:
            return False
        limit = time.monotonic() + _LOOK_EVERY
        while not self.mail.record.unaware and time.monotonic() < limit:
            time.sleep(_GLANCE)
        return bool(self.mail.record.unaware)

    def _take_over(self, worker: WorkerProcess) -> None:
        notes = self.notes

        def rescued(view: View) -> bool:
            jobs = [view.jobs[job_id] for job_id in notes.running_at_kill]
            return any(job.crashes or job.status is not Status.RUNNING for job in jobs)

        self._wait(worker, "another worker to take over", rescued)
        notes.takeover_seconds = round(time.monotonic() - notes.killed_at, 2)
        self.screen.say(
            f"worker {self.workers} takes over what was running, {notes.takeover_seconds:.1f} s after the kill"
        )

    def _finish(self, worker: WorkerProcess) -> None:
        """Until all jobs are done; each that gives up meanwhile is re-queued."""

        def finished(view: View) -> bool:
            for job in view.having(Status.FAILED):
                self._requeue(job)
            return view.all_done

        self._wait(worker, "all jobs to be done", finished)

    def _requeue(self, job: JobSummary) -> None:
        user_id = look_at(self.session, job.id).payload["user_id"]
        email = next(user.email for user in self.example.list_users() if user.id == user_id)
        statement = REQUEUE.replace("%s", str(job.id))
        self.notes.dead_letters.append(
            DeadLetter(job.id, email, job.attempts, job.crashes, job.last_error or "", statement)
        )
        self.screen.say(
            f"dead letter: job {job.id} to {email}, after {job.attempts} attempts: {job.last_error}"
        )
        if email in self.mail.record.closed:
            self.mail.record.closed.discard(email)
            self.screen.say(f"the mailbox of {email} is opened")
        self.screen.say(f"re-queued by plain SQL: {statement}")
        changed = self.session.connection.execute(REQUEUE, (job.id,)).rowcount
        if changed != 1:
            raise PromiseBroken(f"The statement that re-queues job {job.id} changed {changed} rows.")

    def _wait(self, worker: WorkerProcess, what: str, reached: Callable[[View], bool]) -> None:
        while True:
            view = look(self.session)
            self.screen.show(view, "mail server", self.mail.record.verdicts)
            if reached(view):
                return
            if worker.ended:
                raise PromiseBroken(
                    f"Worker {self.workers} ended while the demo waited for {what}.",
                    remedy=f"Its log ends with:\n{worker.last_lines()}",
                )
            if time.monotonic() - self.began > TIME_LIMIT:
                raise PromiseBroken(
                    f"The demo waited for {what}, and {TIME_LIMIT:.0f} s were over.",
                    remedy=f"The log of worker {self.workers} ends with:\n{worker.last_lines()}",
                )
            time.sleep(_LOOK_EVERY)


def address(name: str) -> str:
    """A person's email address."""
    return f"{name.lower()}@example.org"
