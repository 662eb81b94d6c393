"""What a redo does with the message, and how a job on the semel queue follows its operation."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.guard_people.conftest import ME, Inbox

from semel.core.operations import State
from semel.errors import WrongState
from semel.guard.declaration import to_message
from semel.operate.held import abandon, done, redo
from semel.operate.resending import QueueResender
from semel.store.run import run
from semel.store.session import open_session
from semel.store.upkeep import finish_kept, make_history_days
from semel.store.views import find_job, list_events


class Elsewhere:
    """A queue that only notes what it is sent, and what of the operation was committed by then."""

    adapter = "elsewhere"

    def __init__(self, inbox: Inbox, operation_id: int, *, broken: bool = False) -> None:
        self.inbox = inbox
        self.operation_id = operation_id
        self.broken = broken
        self.sent: list[tuple[Mapping[str, Any], State]] = []

    def send(self, message: Mapping[str, Any], *, who: str, why: str) -> str:
        self.sent.append((message, self.inbox.get(self.operation_id).operation.state))
        if self.broken:
            raise ConnectionError("the broker is down")
        return "It is in the queue again."


def test_a_kept_message_is_sent_after_the_release_is_committed(inbox: Inbox) -> None:
    made, _ = inbox.make("held")
    elsewhere = Elsewhere(inbox, made)
    resolved = inbox.act(redo, made, 1, ME, "not there", resenders=[elsewhere])
    assert elsewhere.sent == [({"adapter": "elsewhere", "id": "m-1"}, State.RELEASED)]
    assert (resolved.sent, resolved.note) == (True, "It is in the queue again.")
    assert [event[0] for event in inbox.events(made)] == ["held", "redo", "sent"]


def test_a_message_that_cannot_be_sent_leaves_a_released_operation(inbox: Inbox) -> None:
    made, _ = inbox.make("held")
    resolved = inbox.act(redo, made, 1, ME, "not there", resenders=[Elsewhere(inbox, made, broken=True)])
    assert resolved.sent is False
    assert "the broker is down" in resolved.note
    assert inbox.get(made).operation.state is State.RELEASED
    assert inbox.get(made).message is not None
    assert inbox.events(made)[-1] == ("not_sent", ME, "not there")
    inbox.shift(made, "changed_at", 700)
    elsewhere = Elsewhere(inbox, made)
    assert inbox.act(redo, made, 2, ME, "it is up again", resenders=[elsewhere]).sent is True


def test_who_has_no_message_sends_it_again(inbox: Inbox) -> None:
    made, _ = inbox.make("held", message=None)
    resolved = inbox.act(redo, made, 1, ME, "not there")
    assert (resolved.sent, resolved.note) == (False, "Its message is not kept: send it again yourself.")
    other, _ = inbox.make("held")
    resolved = inbox.act(redo, other, 1, ME, "not there")
    assert resolved.sent is False
    assert "came by elsewhere" in resolved.note


def test_only_a_redo_sends(inbox: Inbox) -> None:
    for act in (done, abandon):
        made, _ = inbox.make("held")
        elsewhere = Elsewhere(inbox, made)
        resolved = inbox.act(act, made, 1, ME, "I looked")
        assert (resolved.sent, resolved.note, elsewhere.sent) == (None, "", [])


def insert_job(url: str, status: str, **columns: object) -> int:
    values = {"kind": "charge", "status": status} | columns
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            f"INSERT INTO semel.jobs ({', '.join(values)}) VALUES ({', '.join(f'%({name})s' for name in values)}) "
            "RETURNING id",
            values,
        ).fetchone()
    assert row is not None
    return int(row[0])


def status_of(inbox: Inbox, job: int) -> str | None:
    found = inbox.run(find_job(job))
    return None if found is None else found.job.status.value


@pytest.mark.parametrize(
    ("status", "act", "after"),
    [
        ("held", done, "done"),
        ("held", redo, "pending"),
        ("held", abandon, "cancelled"),
        ("failed", done, "done"),
        ("failed", redo, "pending"),
        ("failed", abandon, "cancelled"),
        ("pending", done, "pending"),
        ("pending", redo, "pending"),
        ("pending", abandon, "pending"),
        ("cancelled", redo, "pending"),
        ("done", abandon, "done"),
    ],
)
def test_a_job_beside_its_operation_follows_it(beside: Inbox, status: str, act: Any, after: str) -> None:
    beside.run(make_history_days())
    job = insert_job(beside.url, status)
    made, _ = beside.make("held", message=to_message("semel", job_id=job))
    resolved = beside.act(act, made, 1, ME, "I looked")
    assert status_of(beside, job) == after
    assert resolved.sent == (True if act is redo else None)
    assert f"Job {job}" in resolved.note
    told = [(event.who, event.why, event.before, event.after) for event in beside.run(list_events(job))]
    assert told == ([] if status == after else [(ME, "I looked", status, after)])


def test_a_job_that_a_person_called_done_goes_to_the_history(beside: Inbox) -> None:
    beside.run(make_history_days())
    job = insert_job(beside.url, "held")
    made, _ = beside.make("held", message=to_message("semel", job_id=job))
    beside.act(done, made, 1, ME, "I looked")
    assert beside.run(finish_kept(remember=timedelta(0))) == 1
    found = beside.run(find_job(job))
    assert (found.job.status.value, found.in_history) == ("done", True)


def test_the_history_gets_its_day_when_a_job_is_cancelled(beside: Inbox) -> None:
    job = insert_job(beside.url, "held")
    made, _ = beside.make("held", message=to_message("semel", job_id=job))
    with psycopg.connect(beside.url, autocommit=True) as connection:
        for (table,) in connection.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'semel.jobs_done'::regclass"
        ).fetchall():
            connection.execute(f"DROP TABLE {table}")
    beside.act(abandon, made, 1, ME, "I looked")
    assert status_of(beside, job) == "cancelled"
    assert [event[0] for event in beside.events(made)] == ["held", "abandon"]


def test_a_job_in_the_history_runs_again_as_a_copy(beside: Inbox) -> None:
    beside.run(make_history_days())
    job = insert_job(beside.url, "done")
    assert beside.run(finish_kept(remember=timedelta(0))) == 1
    made, _ = beside.make("held", message=to_message("semel", job_id=job))
    resolved = beside.act(redo, made, 1, ME, "not there")
    assert resolved.sent is True
    assert "runs again as job" in resolved.note


def test_a_job_that_is_gone_cannot_be_sent_again(beside: Inbox) -> None:
    made, _ = beside.make("held", message=to_message("semel", job_id=987_654))
    resolved = beside.act(redo, made, 1, ME, "not there")
    assert resolved.sent is False
    assert "Job 987654 is gone" in resolved.note
    assert beside.get(made).operation.state is State.RELEASED


def test_a_refused_decision_leaves_the_job(beside: Inbox) -> None:
    job = insert_job(beside.url, "held")
    made, _ = beside.make("held", message=to_message("semel", job_id=job))
    with pytest.raises(WrongState):
        beside.act(done, made, 7, ME, "I looked")
    assert status_of(beside, job) == "held"


def test_job_and_operation_are_one_commit(beside: Inbox) -> None:
    """While the job's row is locked nothing shows; when the wait is broken off nothing was changed."""
    job = insert_job(beside.url, "held")
    made, _ = beside.make("held", message=to_message("semel", job_id=job))
    with psycopg.connect(beside.url) as holder:
        holder.execute("SELECT 1 FROM semel.jobs WHERE id = %s FOR UPDATE", (job,))
        deciding = threading.Thread(target=lambda: beside.act(done, made, 1, ME, "I looked"))
        deciding.start()
        wait_for_a_lock(beside.url)
        assert beside.get(made).operation.state is State.HELD
        holder.rollback()
        deciding.join()
    assert (beside.get(made).operation.state, status_of(beside, job)) == (State.COMPLETED, "done")


def wait_for_a_lock(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(200):
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            ).fetchone()
            if row is not None and row[0]:
                return
            threading.Event().wait(0.02)
    raise AssertionError("nobody waits for a lock")


def test_a_job_of_another_installation_is_not_touched(beside: Inbox) -> None:
    job = insert_job(beside.url, "held")
    message = to_message("semel", job_id=job, installation="00000000-0000-0000-0000-000000000000")
    made, _ = beside.make("held", message=message)
    resolved = beside.act(redo, made, 1, ME, "not there")
    assert (resolved.sent, status_of(beside, job)) == (False, "held")
    assert f"semel job retry {job}" in resolved.note


@pytest.mark.parametrize("inbox", ["sqlite"], indirect=True)
def test_a_job_in_another_database_is_run_again_there(inbox: Inbox, database_url: str) -> None:
    job = insert_job(database_url, "held")
    made, _ = inbox.make("held", message=to_message("semel", job_id=job))
    with open_session(database_url) as queue:
        resolved = inbox.act(redo, made, 1, ME, "not there", resenders=[QueueResender(queue)])
        assert resolved.sent is True
        found = run(find_job(job), queue)
    assert found is not None
    assert found.job.status.value == "pending"


def test_without_the_queue_beside_it_the_guard_decides_alone(empty_database_url: str) -> None:
    from semel.store.guard_tables import create_tables
    from semel.store.own_connections import open_own

    create_tables(empty_database_url)
    own = open_own(empty_database_url)
    try:
        inbox = Inbox(empty_database_url, own)
        made, _ = inbox.make("held", message=to_message("semel", job_id=1))
        resolved = inbox.act(redo, made, 1, ME, "not there")
        assert (resolved.sent, resolved.after) == (False, State.RELEASED)
    finally:
        own.close()
