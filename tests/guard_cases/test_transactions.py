"""Transactions of the caller's, and connections that the guard must not use."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django.db
import psycopg
import pymysql
import pytest
from tests.guard.mariadb import MariaDB, connect_to, server_of
from tests.guard.places import MAKERS, django_mysql, django_postgresql, need_mysqlclient
from tests.guard_cases.conftest import Case, connect, execute

import semel
from semel import Busy, Row, UnsafeClaim


@contextmanager
def transaction(case: Case) -> Iterator[Any]:
    """The application's own, committed at the end."""
    connection = begin(case)
    try:
        yield connection
    except BaseException:
        execute(connection, "ROLLBACK")
        raise
    else:
        execute(connection, "COMMIT")
    finally:
        connection.close()


def begin(case: Case) -> Any:
    """A connection whose transaction is begun, or begins with its first statement."""
    match case.dialect:
        case "postgresql":
            return psycopg.connect(case.target)
        case "mysql":
            return connect_to(case.target)
    connection = sqlite3.connect(case.target, isolation_level=None, timeout=0.1)
    connection.execute("BEGIN IMMEDIATE")
    return connection


@contextmanager
def visibly_open(case: Case) -> Iterator[Any]:
    """What people give to `Once`, with their transaction open on it; to MariaDB that is a Django alias."""
    if case.dialect == "mysql":
        need_mysqlclient()
        place = MAKERS["django-mysql"][1](server_of(case.target))
        with django.db.transaction.atomic(using=place.target):
            yield place.target
        place.close()
        return
    with transaction(case) as connection:
        execute(connection, "SELECT 1")
        yield connection


@pytest.fixture
def paid(case: Case) -> str:
    """A table of the application's."""
    name = f"paid_{case.job.replace('-', '_')}"
    case.ask(f"CREATE TABLE {name} (number integer)")
    return name


def pay_into(case: Case, table: str) -> Any:
    @case.once.operation(case.job, key="order", effect=Row())
    def pay(op: semel.Operation, order: int) -> str:
        execute(op.connection, f"INSERT INTO {table} VALUES ({order})")
        case.at("paid")
        return f"paid {order}"

    return pay


def numbers(case: Case, table: str) -> list[int]:
    return [row[0] for row in case.ask(f"SELECT number FROM {table} ORDER BY 1")]


def test_c66_an_outside_effect_inside_an_open_transaction_is_refused(case: Case) -> None:
    with visibly_open(case) as given:
        guarded = semel.Once(given)

        @guarded.operation(case.job, key="order")
        def charge(op: semel.Operation, order: int) -> None:
            case.effect(op.reference)

        with pytest.raises(UnsafeClaim, match=r"is in a(n atomic block| transaction)"):
            charge(1)
        guarded.close()
    assert (case.records(), case.effects) == (0, [])


def test_c66_a_row_inside_it_is_rolled_back_with_it(case: Case, paid: str) -> None:
    pay = pay_into(case, paid)
    with pytest.raises(ZeroDivisionError), transaction(case) as connection:
        pay.on(connection)(1)
        raise ZeroDivisionError
    assert (case.records(), numbers(case, paid)) == (0, [])
    with transaction(case) as connection:
        pay.on(connection)(1)
    assert (case.state, numbers(case, paid)) == ("completed", [1])


def test_c67_an_outside_effect_cannot_be_bound_to_a_transaction(case: Case) -> None:
    charge = case.charge()
    with transaction(case) as connection, pytest.raises(UnsafeClaim, match="outside the database"):
        charge.on(connection)
    assert case.records() == 0


def test_f26_a_row_writes_on_the_connection_that_holds_its_claim(case: Case, paid: str) -> None:
    seen = []

    @case.once.operation(case.job, key="order", effect=Row())
    def pay(op: semel.Operation, order: int) -> None:
        seen.append(op.connection)

    with transaction(case) as connection:
        pay.on(connection)(1)
        assert seen == [connection]


def test_f27_a_row_without_a_transaction_is_refused(case: Case, paid: str) -> None:
    pay = pay_into(case, paid)
    connection = connect(case.target)
    with pytest.raises(UnsafeClaim, match="without an open transaction"):
        pay.on(connection)(1)
    connection.close()
    assert (case.records(), numbers(case, paid)) == (0, [])


def test_f33_the_callers_own_rows_survive_a_repeat_and_a_refusal(case: Case, paid: str) -> None:
    pay = pay_into(case, paid)
    pay(1)
    with transaction(case) as connection:
        execute(connection, f"INSERT INTO {paid} VALUES (7)")
        assert pay.on(connection)(1) == "paid 1"
        execute(connection, f"INSERT INTO {paid} VALUES (8)")
    assert numbers(case, paid) == [1, 7, 8]


def test_c42_an_uncommitted_claim_is_busy_and_its_rollback_frees_the_key(case: Case, paid: str) -> None:
    pay = pay_into(case, paid)
    with pytest.raises(ZeroDivisionError), transaction(case) as first:
        pay.on(first)(1)
        if case.dialect == "sqlite":  # one writer a file: the second does not even begin
            with pytest.raises(sqlite3.OperationalError, match="locked"), transaction(case):
                pass
        else:
            with transaction(case) as second, pytest.raises(Busy):
                pay.on(second)(1)
        raise ZeroDivisionError
    with transaction(case) as second:
        assert pay.on(second)(1) == "paid 1"
    assert numbers(case, paid) == [1]


def test_c42_an_uncommitted_claim_that_commits_is_a_repeat_to_the_next(case: Case, paid: str) -> None:
    pay = pay_into(case, paid)
    with transaction(case) as first:
        pay.on(first)(1)
    with transaction(case) as second:
        assert pay.on(second)(1) == "paid 1"
    assert numbers(case, paid) == [1]


def test_c21_in_the_same_database_an_exception_takes_the_effect_back(case: Case, paid: str) -> None:
    pay = pay_into(case, paid)

    def fail() -> None:
        raise ValueError("after the effect")

    case.hooks["paid"] = fail
    with pytest.raises(ValueError, match="after the effect"):
        pay(1)
    assert (case.records(), numbers(case, paid)) == (0, [])
    assert pay(1) == "paid 1"
    assert numbers(case, paid) == [1]


def test_c63_a_violation_of_another_constraint_is_no_repeat(case: Case, paid: str) -> None:
    case.ask(f"CREATE UNIQUE INDEX {paid}_number ON {paid} (number)")
    case.ask(f"INSERT INTO {paid} VALUES (1)")
    pay = pay_into(case, paid)
    violation = (psycopg.errors.UniqueViolation, pymysql.err.IntegrityError, sqlite3.IntegrityError)
    with pytest.raises(violation):
        pay(1)
    assert (case.records(), numbers(case, paid)) == (0, [1])


def test_c31_nothing_depends_on_a_session(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step on a connection of its own, as behind a pooler; whoever comes meanwhile is refused all the same."""
    from semel.store.own_sessions import OwnMysqlSession, OwnPsycopgSession, OwnSqliteSession

    used: list[object] = []
    for session in (OwnMysqlSession, OwnPsycopgSession, OwnSqliteSession):
        monkeypatch.setattr(session, "is_clean", lambda self: used.append(self))
    charge = case.charge(semel.AcceptDuplicate())

    def rival() -> None:
        with pytest.raises(semel.InProgress):
            charge(1)

    case.hooks["acting"] = rival
    assert [charge(1), charge(1)] == ["charge of 1"] * 2
    assert len({id(each) for each in used}) == len(used) >= 4, "the claim, the act and the end; and the rival"
    case.dies("acted", lambda: charge(2))
    case.later(61)
    assert charge(2) == "charge of 2"
    assert len(case.effects) == 3


def read_only(case: Case, request: pytest.FixtureRequest) -> str:
    """A target on a server, or a file, that takes no writes."""
    match case.dialect:
        case "postgresql":
            mark = "&" if "?" in case.target else "?"
            return f"{case.target}{mark}options=-c%20default_transaction_read_only%3Don"
        case "sqlite":
            return f"file:{case.target}?mode=ro"
    server: MariaDB = request.getfixturevalue("own_mariadb")
    server.execute("SET GLOBAL read_only = ON")
    request.addfinalizer(lambda: server.execute("SET GLOBAL read_only = OFF"))
    return server.url(server.create_database())


def test_f37_a_server_that_takes_no_writes_is_refused(case: Case, request: pytest.FixtureRequest) -> None:
    replica = semel.Once(read_only(case, request))

    @replica.operation(case.job, key="order")
    def charge(op: semel.Operation, order: int) -> None:
        case.effect(op.reference)

    with pytest.raises(UnsafeClaim, match="takes no writes"):
        charge(1)
    assert case.effects == []
    replica.close()


def test_f28_an_outside_effect_beside_the_callers_own_write_lock_is_busy(case: Case) -> None:
    """On SQLite, where a file has one writer; elsewhere nobody is in the way."""
    charge = case.charge()
    with transaction(case):
        if case.dialect == "sqlite":
            with pytest.raises(Busy):
                charge(1)
            assert case.effects == []
        else:
            assert charge(1) == "charge of 1"
    assert charge(1) == "charge of 1"
    assert len(case.effects) == 1


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_f30_the_callers_rows_survive_a_repeat_under_a_strict_isolation(
    case: Case, paid: str, isolation: str
) -> None:
    if case.dialect == "sqlite":
        pytest.skip("SQLite has one isolation")
    pay = pay_into(case, paid)
    pay(1)
    with transaction(case) as connection:
        execute(connection, f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        execute(connection, f"INSERT INTO {paid} VALUES (7)")
        assert pay.on(connection)(1) == "paid 1"
    assert numbers(case, paid) == [1, 7]


def test_f25_djangos_own_blocks_around_a_test_are_no_open_transaction(case: Case, tmp_path: Path) -> None:
    """In a process of its own: Django is set up once in one. On MariaDB over PyMySQL, in mysqlclient's place."""
    from semel.store.export import export_guard

    migrations = tmp_path / "shop" / "migrations"
    migrations.mkdir(parents=True)
    for package in (migrations, migrations.parent):
        (package / "__init__.py").touch()
    (migrations / "0001_guard.py").write_text(export_guard("django", case.dialect))
    database: dict[str, Any] = {
        "postgresql": lambda: django_postgresql(case.target),
        "mysql": lambda: django_mysql(server_of(case.target)),
        "sqlite": lambda: {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": case.target,
            "TEST": {"NAME": str(tmp_path / "test.db")},
        },
    }[case.dialect]()
    driver = "import pymysql\npymysql.install_as_MySQLdb()\n" if case.dialect == "mysql" else ""
    (tmp_path / "settings.py").write_text(
        f"{driver}DATABASES = {{'default': {database!r}}}\nINSTALLED_APPS = ['shop']\n"
    )
    (migrations.parent / "tests.py").write_text(DJANGO_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "django", "test", "shop", "--settings=settings", "--pythonpath=."],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Ran 3 tests" in done.stderr


DJANGO_TESTS = """
import semel
from django.db import connection, transaction
from django.test import TestCase

once = semel.Once("default")
acted = []


@once.operation("charge", key="order")
def charge(op, order):
    acted.append(order)


@once.operation("credit", key="order", effect=semel.Row())
def credit(op, order):
    return "credited"


def tearDownModule():
    once.close()  # PostgreSQL drops no database that somebody is connected to


class Orders(TestCase):
    def test_a_call_is_not_refused(self):
        charge(1)
        self.assertEqual(acted, [1])

    def test_a_block_of_the_applications_is(self):
        with self.assertRaises(semel.UnsafeClaim), transaction.atomic():
            charge(2)

    def test_a_row_takes_the_tests_transaction(self):
        self.assertEqual([credit.on("default")(1), credit.on(connection)(1)], ["credited"] * 2)
"""


def test_f27_a_handler_that_commits_midway_is_held_although_the_caller_rolls_back(
    case: Case, paid: str
) -> None:
    """On PostgreSQL, where it is written apart, also in the caller's own transaction; elsewhere in the guard's own."""
    pay = pay_into(case, paid)
    midway = begin(case)
    case.hooks["paid"] = midway.commit
    with pytest.raises(semel.ClaimLost):
        pay.on(midway)(1)
    midway.rollback()
    midway.close()
    case.later(3600)
    with pytest.raises(semel.Held):
        if case.dialect == "postgresql":
            with transaction(case) as connection:
                pay.on(connection)(1)
        else:
            pay(1)
    assert case.state == "held"
    assert case.events() == ["held"]
