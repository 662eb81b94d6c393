"""What happened, read out of the database and the mail server's record; nothing here is a constant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from semel.cli.demonstration.example import User
from semel.cli.demonstration.mail_server import Record
from semel.core.report import JobFilter, JobRecord, JobSummary
from semel.core.states import Status
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.run import run
from semel.store.views import find_job, list_jobs

SIGN_UPS = JobFilter(kind="welcome_email")
_MOST_JOBS = 200


@dataclass(frozen=True, slots=True)
class View:
    """Every job of the demo at one instant, by id, as `semel jobs` would list them."""

    jobs: dict[int, JobSummary]
    conditions: Counter[str]

    def having(self, status: Status) -> list[JobSummary]:
        return [job for job in self.jobs.values() if job.status is status]

    @property
    def all_done(self) -> bool:
        return len(self.having(Status.DONE)) == len(self.jobs)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that gave up, as it was before it was re-queued."""

    id: int
    email: str
    attempts: int
    crashes: int
    """They start anew when it is claimed again."""
    last_error: str
    statement: str


@dataclass
class Notes:
    """What the story saw happen and the database does not keep: filled in as it goes."""

    signed_up: int = 0
    rolled_back: str = ""
    """The address of the sign-up that was taken back."""
    killed: tuple[int, ...] = ()
    """The processes that got SIGKILL."""
    running_at_kill: frozenset[int] = frozenset()
    killed_at: float = 0.0
    takeover_seconds: float | None = None
    """From the kill until another worker had the first of the jobs that ran then."""
    dead_letters: list[DeadLetter] = field(default_factory=list)
    exit_code: int | None = None
    """The second worker's, at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFigures:
    """One user's row of the final table."""

    name: str
    email: str
    job: int
    status: str
    attempts: int
    """Charged attempts over all lives of the job."""
    crashes: int
    """Runs that ended with their worker, over all lives of the job."""
    refused: int
    accepted: int
    message_ids: int
    """Different Message-IDs among the messages offered."""
    dead_letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The result of one demonstration."""

    seconds: float
    seed: int
    postgresql: str
    speed: float
    lease_seconds: float
    sign_ups: int
    rolled_back: int
    traces_of_rolled_back: int
    """Its rows among the users, plus messages offered to it."""
    users: int
    jobs: int
    jobs_done: int
    attempts: int
    """Runs: the charged ones, and those that ended with their worker."""
    retries: int
    """Charged attempts that followed an error."""
    killed_processes: int
    running_at_kill: int
    recovered: int
    takeover_seconds: float | None
    dead_letters: int
    requeued_and_done: int
    messages_accepted: int
    messages_refused: int
    accepted_twice: int
    """Users who got the message more than once."""
    worker_exit_code: int | None
    dead_letter_list: list[DeadLetter]
    user_list: list[UserFigures]


def look(session: PsycopgSession, wanted: JobFilter = SIGN_UPS) -> View:
    """The jobs, now."""
    page = run(list_jobs(wanted, limit=_MOST_JOBS), session)
    conditions = Counter(job.condition(page.as_of) for job in page.jobs)
    return View({job.id: job for job in page.jobs}, conditions)


def look_at(session: PsycopgSession, job_id: int) -> JobRecord:
    """One job with its payload and errors; it is there."""
    found = run(find_job(job_id), session)
    assert found is not None
    return found


def users_by_job(session: PsycopgSession, view: View, users: Sequence[User]) -> dict[int, User]:
    """Whose each job is, by its payload; jobs of users that are not there are left out."""
    known = {user.id: user for user in users}
    owners = {job_id: look_at(session, job_id).payload["user_id"] for job_id in sorted(view.jobs)}
    return {job_id: known[user_id] for job_id, user_id in owners.items() if user_id in known}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All that figures are made of."""

    view: View
    owners: dict[int, User]
    users: Sequence[User]
    record: Record
    notes: Notes


def count_user(sources: Sources, job_id: int, user: User) -> UserFigures:
    """One user's figures."""
    job, record = sources.view.jobs[job_id], sources.record
    before = [letter for letter in sources.notes.dead_letters if letter.id == job_id]
    killed = int(job_id in sources.notes.running_at_kill)
    """Its count of crashes starts anew when a later attempt ends by itself, so what was seen counts too."""
    offers = [offer for offer in record.offers if offer.recipient == user.email]
    return UserFigures(
        name=user.name,
        email=user.email,
        job=job_id,
        status=job.status.value,
        attempts=job.attempts + sum(letter.attempts for letter in before),
        crashes=max(killed, job.crashes + sum(letter.crashes for letter in before)),
        refused=record.refused(user.email),
        accepted=record.accepted(user.email),
        message_ids=len({offer.message_id for offer in offers}),
        dead_letters=len(before),
    )


def count(sources: Sources, *, seconds: float, postgresql: str, speed: float, lease: float) -> Figures:
    """The figures of the whole."""
    notes, jobs, record = sources.notes, sources.view.jobs, sources.record
    people = [count_user(sources, job_id, user) for job_id, user in sources.owners.items()]
    done = {job.id for job in sources.view.having(Status.DONE)}
    attempts = sum(person.attempts for person in people)
    return Figures(
        seconds=round(seconds, 1),
        seed=record.seed,
        postgresql=postgresql,
        speed=speed,
        lease_seconds=lease,
        sign_ups=notes.signed_up,
        rolled_back=notes.signed_up - len(sources.users),
        traces_of_rolled_back=sum(user.email == notes.rolled_back for user in sources.users)
        + sum(offer.recipient == notes.rolled_back for offer in record.offers),
        users=len(sources.users),
        jobs=len(jobs),
        jobs_done=len(done),
        attempts=attempts + sum(person.crashes for person in people),
        retries=attempts - len(people) - len(notes.dead_letters),
        killed_processes=len(notes.killed),
        running_at_kill=len(notes.running_at_kill),
        recovered=len(notes.running_at_kill & done),
        takeover_seconds=notes.takeover_seconds,
        dead_letters=len(notes.dead_letters),
        requeued_and_done=sum(letter.id in done for letter in notes.dead_letters),
        messages_accepted=sum(offer.accepted for offer in record.offers),
        messages_refused=sum(not offer.accepted for offer in record.offers),
        accepted_twice=sum(person.accepted > 1 for person in people),
        worker_exit_code=notes.exit_code,
        dead_letter_list=notes.dead_letters,
        user_list=people,
    )
