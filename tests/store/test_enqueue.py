"""Unique keys under rivals, isolation levels, and what an enqueue may leave behind."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec
import psycopg
import pytest

from semel import Enqueued, RetryTransaction, SchemaMismatch
from semel.core.job import JobOptions, NewJob
from semel.core.states import Status
from semel.sql import Catalogue
from semel.store import enqueue as module
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.enqueue import enqueue, enqueue_many
from semel.store.jobs import Fence, claim, settle
from semel.store.run import run


@pytest.fixture
def connect(database_url):
    """Makes sessions on connections of their own, in autocommit unless said otherwise."""
    opened = []

    def connect(**options):
        connection = psycopg.connect(database_url, **{"autocommit": True, **options})
        opened.append(connection)
        return PsycopgSession(connection, Catalogue())

    yield connect
    for connection in opened:
        connection.close()


def job(number=1, **options):
    return NewJob("charge", b'{"order":%d}' % number, JobOptions(**options))


def count(session):
    return session.connection.execute("SELECT count(*) FROM semel.jobs").fetchone()[0]


@contextmanager
def waiting_rival(connect, operation):
    """An enqueue that runs in a thread, and is seen to wait for a lock before the block goes on."""
    rival = connect()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run, operation, rival)
        process = rival.connection.info.backend_pid
        watcher = connect()
        while True:
            (event,) = watcher.connection.execute(
                "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", (process,)
            ).fetchone()
            if event == "Lock":
                break
            assert not future.done()
        yield future


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_rival_waits_for_an_open_transaction_with_the_same_key(connect, many, end):
    winner = connect(autocommit=False)
    first = run(enqueue(job(1, unique_key="k")), winner)
    second = job(2, unique_key="k")
    with waiting_rival(connect, enqueue_many([second], copy=True) if many else enqueue(second)) as future:
        getattr(winner.connection, end)()
        answer = future.result(timeout=10)
    (answer,) = answer if many else (answer,)
    if end == "commit":
        assert answer == Enqueued(first.id, created=False, status=Status.PENDING)
    else:
        assert answer.created
        assert answer.id != first.id
    assert count(connect()) == 1


def test_the_answer_says_what_became_of_the_holder(connect):
    session = connect()
    first = run(enqueue(job(unique_key="k")), session)
    session.connection.execute("UPDATE semel.jobs SET status = 'running'")
    session.connection.execute("UPDATE semel.jobs SET status = 'failed'")
    assert run(enqueue(job(unique_key="k")), session) == Enqueued(
        first.id, created=False, status=Status.FAILED
    )


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_key_whose_time_is_over_is_free_before_upkeep_comes(connect, many):
    session = connect()
    first = run(enqueue(job(unique_key="k", unique_for="1 h")), session)
    again = enqueue_many([job(unique_key="k")], copy=True) if many else enqueue(job(unique_key="k"))
    session.connection.execute("UPDATE semel.jobs SET status = 'done'")
    held = run(again, session)
    assert (held[0] if many else held) == Enqueued(first.id, created=False, status=Status.DONE)
    session.connection.execute("UPDATE semel.jobs SET unique_until = now() - interval '1 s'")
    freed = run(again, session)
    assert (freed[0] if many else freed).created
    assert session.connection.execute(
        "SELECT id, unique_key FROM semel.jobs WHERE status = 'done'"
    ).fetchall() == [(first.id, None)]


def test_a_key_without_a_time_is_remembered_after_the_job_is_done(connect):
    session = connect()
    first = run(enqueue(job(unique_key="k")), session)
    (taken,) = run(
        claim(worker=5, limit=1, lease=timedelta(minutes=1), max_crashes=3, queues=None), session
    ).taken
    run(settle([Fence(taken.id, taken.claim, 5)], [], remember=timedelta(hours=1)), session)
    assert run(enqueue(job(unique_key="k")), session) == Enqueued(first.id, created=False, status=Status.DONE)


@pytest.mark.parametrize("status", ["pending", "running"])
def test_a_live_job_keeps_its_key_past_its_time(connect, status):
    session = connect()
    first = run(enqueue(job(unique_key="k", unique_for="1 s")), session)
    session.connection.execute(
        "UPDATE semel.jobs SET unique_until = now() - interval '1 h', status = %s", (status,)
    )
    assert run(enqueue(job(unique_key="k")), session).id == first.id


def test_kinds_do_not_share_their_keys(connect):
    session = connect()
    other = NewJob("refund", b"{}", JobOptions(unique_key="k"))
    assert all(run(enqueue(each), session).created for each in (job(unique_key="k"), other))


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_under_repeatable_read_an_unseen_holder_ends_the_transaction(connect, level, many):
    caller = connect(autocommit=False)
    caller.connection.isolation_level = psycopg.IsolationLevel[level]
    caller.connection.execute("SELECT 1")  # the snapshot
    run(enqueue(job(1, unique_key="k")), connect())
    with pytest.raises(RetryTransaction) as caught:
        run(
            enqueue_many([job(2, unique_key="k")], copy=True) if many else enqueue(job(2, unique_key="k")),
            caller,
        )
    assert caught.value.__cause__.sqlstate == "40001"
    caller.connection.rollback()
    assert not run(enqueue(job(2, unique_key="k")), caller).created


def test_under_repeatable_read_what_meets_nobody_is_stored(connect):
    caller = connect(autocommit=False)
    caller.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    assert run(enqueue(job(1, unique_key="k")), caller).created
    assert not run(enqueue(job(2, unique_key="k")), caller).created
    caller.connection.commit()
    assert count(connect()) == 1


@pytest.mark.parametrize("rounds", [20])
def test_many_rivals_store_one_job_a_key(connect, rounds):
    rivals = 6
    sessions = [connect() for _ in range(rivals)]
    start = threading.Barrier(rivals)

    def enqueue_all(rival):
        answers = []
        for number in range(rounds):
            start.wait()
            keys = [f"{number}-{each}" for each in range(10)]
            jobs = [job(rival, unique_key=key) for key in (keys if rival % 2 else reversed(keys))]
            answers += sorted(
                (each.id, each.created) for each in run(enqueue_many(jobs, copy=True), sessions[rival])
            )
        return answers

    with ThreadPoolExecutor(rivals) as pool:
        answers = list(pool.map(enqueue_all, range(rivals)))
    assert len({tuple(id_ for id_, _ in each) for each in answers}) == 1  # all were told the same jobs
    assert sum(created for each in answers for _, created in each) == rounds * 10
    assert count(connect()) == rounds * 10


def test_a_key_that_changes_hands_for_ever_ends_in_an_error(connect, monkeypatch):
    """A holder that is gone whenever it is looked for: the conflict is real, the look-up finds nothing."""

    class Forgetful(PsycopgSession):
        def execute(self, statement):
            rows = super().execute(statement)
            return [] if statement.name.startswith("queue/find_unique") else rows

    run(enqueue(job(unique_key="k")), connect())
    session = Forgetful(connect().connection, Catalogue())
    for operation in (enqueue(job(unique_key="k")), enqueue_many([job(unique_key="k")], copy=False)):
        with pytest.raises(RetryTransaction, match="changed hands"):
            run(operation, session)
    assert count(connect()) == 1


@pytest.mark.parametrize(("rows", "size"), [(2, 10**9), (5_000, 50)], ids=["by rows", "by bytes"])
def test_lists_are_cut_and_still_stored_whole_or_not_at_all(connect, monkeypatch, rows, size):
    monkeypatch.setattr(module, "MOST_ROWS", rows)
    monkeypatch.setattr(module, "MOST_BYTES", size)
    seen = []
    session = connect()
    session.watch = lambda point, name: seen.append(name) if point == "before" else None
    jobs = [job(number, unique_key=f"k{-number}") for number in range(9)]
    answers = run(enqueue_many(jobs, copy=True), session)
    assert seen.count("queue/enqueue_many") > 2
    stored = session.connection.execute("SELECT id, payload -> 'order' FROM semel.jobs ORDER BY 2").fetchall()
    assert stored == [(answer.id, number) for number, answer in enumerate(answers)]

    bad = NewJob("charge", b'{"order":}')  # not JSON, which only the database notices
    with pytest.raises(psycopg.Error):
        run(enqueue_many([*(job(number) for number in range(9)), bad], copy=True), session)
    assert count(connect()) == 9


def test_a_failed_list_leaves_the_callers_transaction_usable(connect):
    caller = connect(autocommit=False)
    run(enqueue(job(1)), caller)
    jobs = [job(2, unique_key="k"), NewJob("charge", b'{"order":}', JobOptions(unique_key="l"))]
    with pytest.raises(psycopg.Error):
        run(enqueue_many(jobs, copy=True), caller)
    run(enqueue(job(3)), caller)
    caller.connection.commit()
    assert count(connect()) == 2


@pytest.mark.parametrize(
    "operation", [enqueue(job()), enqueue_many([job()] * 3, copy=True)], ids=["one", "many"]
)
def test_missing_tables_say_how_to_make_them(empty_database_url, operation):
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        with pytest.raises(SchemaMismatch, match="semel migrate"):
            run(operation, PsycopgSession(connection, Catalogue()))


def test_a_producer_needs_no_more_than_to_insert_and_look(connect, database_url):
    owner = connect().connection
    owner.execute("DROP ROLE IF EXISTS semel_producer_test")
    owner.execute("CREATE ROLE semel_producer_test")
    owner.execute("GRANT USAGE ON SCHEMA semel TO semel_producer_test")
    owner.execute("GRANT INSERT, SELECT ON semel.jobs TO semel_producer_test")
    owner.execute("GRANT USAGE ON SEQUENCE semel.jobs_id_seq TO semel_producer_test")
    session = connect()
    session.connection.execute("SET ROLE semel_producer_test")
    try:
        assert run(enqueue(job(unique_key="k")), session).created
        assert not run(enqueue(job(unique_key="k")), session).created
        assert len(run(enqueue_many([job()] * 1_000, copy=True), session)) == 1_000
        assert len(run(enqueue_many([job(unique_key="k")] * 2, copy=True), session)) == 2
    finally:
        session.connection.execute("RESET ROLE")
        owner.execute("DROP OWNED BY semel_producer_test")
        owner.execute("DROP ROLE semel_producer_test")


@pytest.mark.parametrize(
    "name",
    [
        "enqueue",
        "enqueue_keyed",
        "enqueue_many",
        "find_unique",
        "find_unique_many",
        "free_unique",
        "reserve_ids",
    ],
)
def test_statements_are_written_for_every_driver(name):
    text = Catalogue().text(f"queue/{name}")
    assert "::" not in text.raw
    assert "%" not in text.raw
    assert text.named.count("%(") == text.bare.count("CAST(:")


ODD_TEXTS = ["a\tb\nc\rd", "\\N", "\\.", "\\", "\\t", "e\u2028\u0085\x0b\x7f", "naïve 😀", '"', "{}", ""]


def test_copy_stores_every_text_as_it_is(connect):
    session = connect()
    jobs = [
        NewJob(f"kind {text!a}", msgspec.json.encode({"text": text}), JobOptions(ordering_key=text or None))
        for text in ODD_TEXTS
        if "\t" not in text
    ]
    spread_out = NewJob(
        "charge", b'{\n\t"order":\r\n 1}'
    )  # JSON that nobody's encoder writes, and that is valid
    jobs = [*jobs, spread_out, *(job(number) for number in range(module.COPY_FROM))]
    answers = run(enqueue_many(jobs, copy=True), session)
    stored = session.connection.execute("SELECT id, kind, payload, ordering_key FROM semel.jobs ORDER BY id")
    assert stored.fetchall() == [
        (answer.id, each.kind, msgspec.json.decode(each.payload), each.options.ordering_key)
        for answer, each in zip(answers, jobs, strict=True)
    ]


def test_copy_keeps_each_jobs_own_options(connect):
    session = connect()
    late = datetime(2031, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
    mixed = [JobOptions(queue="a", priority=-3), JobOptions(max_attempts=32_767), JobOptions(run_at=late)]
    jobs = [NewJob("charge", b"{}", mixed[number % 3]) for number in range(module.COPY_FROM)]
    run(enqueue_many([*jobs, NewJob("refund", b"{}", mixed[0])], copy=True), session)
    stored = session.connection.execute(
        "SELECT kind, queue, priority, max_attempts, CASE WHEN run_at > '2031-01-01' THEN run_at END, count(*)"
        " FROM semel.jobs GROUP BY 1, 2, 3, 4, 5 ORDER BY 1 DESC, 2, 3, 4"
    ).fetchall()
    assert stored == [
        ("refund", "a", -3, 8, None, 1),
        ("charge", "a", -3, 8, None, 334),
        ("charge", "default", 0, 8, late, 333),
        ("charge", "default", 0, 32_767, None, 333),
    ]


@pytest.mark.parametrize(
    "options",
    [
        [{}],
        [{"run_after": "1 day"}],
        [{"ordering_key": "a"}],
        [{}, {"ordering_key": "a"}],
        [{}, {"run_after": "1 day"}],
        [
            {"run_at": datetime(2031, 2, 3, tzinfo=UTC)},
            {"ordering_key": "a"},
            {},
            {"queue": "b", "priority": 7},
        ],
    ],
    ids=str,
)
def test_copy_stores_what_an_insert_stores(connect, options):
    """Whichever columns it names: those that no job has a value for are left out."""
    session = connect(autocommit=False)
    given = [JobOptions(**each) for each in options]
    many = [NewJob("copied", b"{}", given[number % len(given)]) for number in range(module.COPY_FROM)]
    run(enqueue_many(many, copy=True), session)
    run(enqueue_many([msgspec.structs.replace(each, kind="inserted") for each in many], copy=False), session)
    stored = session.connection.execute(
        "SELECT kind, array_agg((queue, priority, max_attempts, ordering_key, status, attempts, created_at = now(),"
        " round(extract(epoch FROM run_at - now()), -2)) ORDER BY id) AS rows FROM semel.jobs GROUP BY kind ORDER BY kind"
    ).fetchall()
    assert [kind for kind, _ in stored] == ["copied", "inserted"]
    assert stored[0][1] == stored[1][1]
    due = session.connection.execute("SELECT count(*) FROM semel.jobs WHERE run_at = now()").fetchone()[0]
    assert (due > 0) == any(module._is_due(each) for each in given)


def test_a_copy_is_made_while_the_server_takes_it(connect):
    """Not all at once: what is in memory besides the jobs does not grow with them."""
    taken = []

    class Counting(PsycopgSession):
        def copy(self, copy):
            taken.extend(map(len, copy.pieces))
            return ()

    big = [NewJob("charge", b'{"text":"%s"}' % (b"x" * 50_000))] * module.COPY_FROM
    run(enqueue_many(big, copy=True), Counting(connect().connection, Catalogue()))
    assert len(taken) >= module.COPY_FROM
    assert max(taken) < 100_000
