"""What MariaDB does to the caller's transaction: time-outs that keep it, deadlocks that end it, and its settings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from secrets import token_hex
from typing import Any

import pytest
from pymysql.constants import CLIENT
from tests.guard.conftest import make_request
from tests.guard.mariadb import MariaDB
from tests.guard.places import MAKERS, Place, connect_mysqlclient

from semel import Once, Operation
from semel.core.effects import Row
from semel.core.operations import Reply
from semel.errors import DatabaseUnreachable, RetryTransaction, UnsafeClaim
from semel.sql import Catalogue
from semel.store.drivers import mysql_driver
from semel.store.guard_begin import begin_known, begin_new, begin_row
from semel.store.guard_end import complete_row
from semel.store.guard_tables import create_tables
from semel.store.open_transactions import describe_open_transaction
from semel.store.own_connections import open_own
from semel.store.run import run
from semel.store.sessions import sync_session_for


@pytest.fixture(scope="module", params=["pymysql", "mysqlclient"])
def place(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Any:
    made: Place = MAKERS[request.param][1](make_database("mysql"))
    yield made
    made.close()


def connect(place: Place, **options: Any) -> Any:
    server, name = place.where
    if place.name == "mysqlclient":
        return connect_mysqlclient(server, name, **options)
    return server.connect(name, **options)


@pytest.fixture
def connection(place: Place) -> Any:
    """A caller's, in autocommit, as people set it who write BEGIN themselves."""
    opened = connect(place, autocommit=True)
    yield opened
    opened.close()


def test_a_begin_in_autocommit_is_seen(place: Place, connection: Any) -> None:
    assert describe_open_transaction(connection) is None
    connection.begin()
    assert "in a transaction" in str(describe_open_transaction(connection))
    connection.rollback()
    assert describe_open_transaction(connection) is None
    with connection.cursor() as cursor:
        cursor.execute("SET autocommit = 0")
    assert "not in autocommit" in str(describe_open_transaction(connection))


def test_a_row_after_a_begin_in_autocommit_is_the_callers_to_roll_back(place: Place, connection: Any) -> None:
    once = Once(place.target)
    charge = once.operation("charge", key="order", effect=Row(), with_operation=False, payload=())(
        lambda order: "charged"
    )
    name = token_hex(8)
    with pytest.raises(UnsafeClaim, match="without an open transaction"):
        charge.on(connection)(name)
    connection.begin()
    assert charge.on(connection)(name) == "charged"
    connection.rollback()
    connection.begin()
    assert charge.on(connection)(name) == "charged", "nothing was left"
    connection.commit()
    connection.begin()
    with session_on(connection).transaction():
        pass
    assert describe_open_transaction(connection), (
        "a transaction inside it is a savepoint, and commits nothing"
    )
    assert charge.on(connection)(name) == "charged"
    connection.rollback()
    once.close()


def test_a_server_without_a_word_for_it_counts_as_not_open(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As MySQL is: mysqlclient cannot tell there, and a `Row()` after a plain BEGIN is refused."""
    monkeypatch.setattr(mysql_driver, "_IS_OPEN", "SELECT @@no_such_variable")
    assert describe_open_transaction(connection) is None


@pytest.mark.parametrize("options", [{"use_unicode": False}, {"charset": "latin1"}], ids=str)
def test_whatever_text_the_callers_connection_makes(place: Place, options: dict[str, Any]) -> None:
    """Bytes in place of text, or another character set than the guard's own."""
    if place.name == "pymysql" and "use_unicode" in options:
        pytest.skip("PyMySQL cannot read a DECIMAL with it")
    request = make_request("mysql", effect=Row(), scope="café", label="café")
    connection = connect(place, **options)
    try:
        session = session_on(connection)
        assert run(begin_row(request), session).reply is Reply.ACT
        assert run(complete_row(request, result='{"total": "9.50 \u20ac"}', result_dropped=False), session)
        again = run(begin_row(replace(request, token="r" * 32)), session)
        connection.commit()
    finally:
        connection.close()
    assert (again.reply, again.record.result) == (Reply.REPEAT, {"total": "9.50 €"})
    known = place.ask(begin_known(replace(request, token="s" * 32)))
    assert (known.reply, known.record.result) == (Reply.REPEAT, {"total": "9.50 €"})


def test_what_a_row_stores_comes_back_by_its_annotation(place: Place) -> None:
    """A Decimal, a date and bytes' length, written and read on the caller's connection by its own driver."""
    once = Once(place.target)
    with connect(place) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bills (amount decimal(10, 2), due date, paper blob)")

    @once.operation("bill", key=("order", "amount", "due"), effect=Row())
    def bill(op: Operation, order: str, amount: Decimal, due: date) -> tuple[Decimal, date, int]:
        with op.connection.cursor() as cursor:
            cursor.execute("INSERT INTO bills VALUES (%s, %s, %s)", (amount, due, b"\0\xff"))
            cursor.execute("SELECT amount, due, length(paper) FROM bills WHERE due = %s", (due,))
            return cursor.fetchone()

    name = token_hex(8)
    answers = []
    for amount in (Decimal("9.5"), Decimal("9.50")):
        connection = connect(place)
        answers.append(bill.on(connection)(name, amount, due=date(2030, 5, 1)))
        connection.commit()
        connection.close()
    assert tuple(answers[0]) == tuple(answers[1]) == (Decimal("9.50"), date(2030, 5, 1), 2)
    with connect(place) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM bills")
        assert cursor.fetchone() == (1,)
        cursor.execute("DROP TABLE bills")
    once.close()


def test_the_files_of_tls_are_given_as_each_driver_takes_them(place: Place) -> None:
    """By a socket mysqlclient asks for none; by another name than its own it would raise TypeError."""
    own = open_own(f"{place.target}&ssl_ca=/nowhere/ca.pem")
    try:
        with own.session():
            pass
    except (DatabaseUnreachable, FileNotFoundError) as refused:
        assert place.name == "pymysql", refused  # noqa: PT017
    own.close()


def session_on(connection: Any) -> Any:
    return sync_session_for(connection, Catalogue("semel", "mysql"))


def wait_of(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@innodb_lock_wait_timeout")
        return int(cursor.fetchone()[0])


def test_the_callers_own_time_to_wait_is_restored(place: Place) -> None:
    request = make_request("mysql", effect=Row())
    rival = replace(request, token="r" * 32)
    winner, loser = connect(place), connect(place)
    with loser.cursor() as cursor:
        cursor.execute("SET innodb_lock_wait_timeout = 37")
    assert run(begin_row(request), session_on(winner)).reply is Reply.ACT
    assert run(begin_row(rival), session_on(loser)) is None
    assert wait_of(loser) == 37
    winner.rollback()
    assert run(begin_row(rival), session_on(loser)).reply is Reply.ACT
    assert wait_of(loser) == 37
    for each in (winner, loser):
        each.close()


@pytest.mark.parametrize("flag", [0, CLIENT.FOUND_ROWS])
def test_a_new_row_is_known_by_its_token_whatever_is_counted(place: Place, flag: int) -> None:
    connection = connect(place, client_flag=flag, autocommit=True)
    session = session_on(connection)
    request = make_request("mysql")
    assert run(begin_new(request), session) is not None
    assert run(begin_new(replace(request, token="r" * 32)), session) is None
    connection.autocommit(False)
    row = make_request("mysql", effect=Row())
    assert run(begin_row(row), session).reply is Reply.ACT
    connection.commit()
    assert run(begin_row(replace(row, token="r" * 32)), session).reply is Reply.IN_PROGRESS
    connection.rollback()
    connection.close()


def test_a_ddl_statement_commits_midway(place: Place) -> None:
    connection = connect(place)
    session = session_on(connection)
    request = make_request("mysql", effect=Row())
    assert run(begin_row(request), session).reply is Reply.ACT
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS surprise (id integer)")
    assert run(complete_row(request, result=None, result_dropped=False), session) is False
    connection.close()


def test_a_deadlock_says_that_the_transaction_is_gone(place: Place) -> None:
    """Two transactions claim two operations in opposite order; the one that InnoDB ends hears it."""
    first, second = (make_request("mysql", effect=Row()) for _ in range(2))
    for each in (first, second):
        place.ask(begin_new(each))
    one, other = connect(place), connect(place)
    barrier = threading.Barrier(2)
    answers: list[Any] = []

    def claim(connection: Any, order: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET innodb_lock_wait_timeout = 10")
            cursor.execute(
                "SELECT id FROM semel_operations WHERE scope = '' AND job_type = 'charge'"
                " AND `key` = UNHEX(%s) FOR UPDATE",
                (order[0].key,),
            )
        barrier.wait()
        try:
            answers.append(run(begin_row(replace(order[1], token="r" * 32)), session_on(connection)))
        except RetryTransaction as error:
            answers.append(error)
        finally:
            connection.rollback()

    threads = [
        threading.Thread(target=claim, args=(one, (first, second))),
        threading.Thread(target=claim, args=(other, (second, first))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    errors = [each for each in answers if isinstance(each, RetryTransaction)]
    assert len(errors) == 1, answers
    assert "The transaction is gone" in str(errors[0])
    assert wait_of(one) == wait_of(other) == 10
    one.close()
    other.close()


@pytest.mark.parametrize("known", [True, False])
def test_a_stale_snapshot_says_that_the_transaction_is_gone(place: Place, known: bool) -> None:
    """MariaDB's innodb_snapshot_isolation: error 1020 for a row that has changed since the snapshot, or is new."""
    request = make_request("mysql", effect=Row())
    winner, loser = connect(place), connect(place)
    if known:
        place.ask(begin_new(request))
    try:
        with loser.cursor() as cursor:
            cursor.execute("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")
            if not cursor.fetchall():
                pytest.skip("this server has no innodb_snapshot_isolation (MariaDB has it from 10.6.18 on)")
            cursor.execute("SET SESSION innodb_snapshot_isolation = ON")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            loser.rollback()
            cursor.execute("SELECT count(*) FROM semel_operations")  # takes the snapshot
        session = session_on(winner)
        assert run(begin_known(request) if known else begin_row(request), session).reply is Reply.ACT
        winner.commit()
        with pytest.raises(RetryTransaction, match="The transaction is gone"):
            run(begin_row(replace(request, token="r" * 32)), session_on(loser))
        loser.rollback()
        assert run(begin_row(replace(request, token="r" * 32)), session_on(loser)).reply is Reply.IN_PROGRESS
    finally:
        for each in (winner, loser):
            each.rollback()
            each.close()


def test_where_a_time_out_ends_the_transaction_it_says_so(own_mariadb: MariaDB) -> None:
    """innodb_rollback_on_timeout can only be set at the server's start."""
    name = own_mariadb.create_database()
    create_tables(own_mariadb.url(name))
    request = make_request("mysql", effect=Row())
    winner, loser = own_mariadb.connect(name), own_mariadb.connect(name)
    with loser.cursor() as cursor:
        cursor.execute("CREATE TABLE shop (id integer)")
        cursor.execute("INSERT INTO shop VALUES (1)")
    assert run(begin_row(request), session_on(winner)).reply is Reply.ACT
    with pytest.raises(RetryTransaction, match="rollback_on_timeout") as told:
        run(begin_row(replace(request, token="r" * 32)), session_on(loser))
    assert "nothing of it is stored" in str(told.value)
    loser.commit()
    with loser.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM shop")
        assert cursor.fetchone() == (0,), "the server ended it, as the answer said"
    for each in (winner, loser):
        each.rollback()
        each.close()
    own_mariadb.drop_database(name)
