"""A replay writes only to what was declared as staging; what is kept of an address lets nobody in."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from semel.errors import ConfigurationError, NotStaging
from semel.replay import CalledFunction, Command, CountHttp, CountSql, Description, GuardPlace, Watch
from semel.replay.staging import (
    declare,
    project_of,
    read_declared,
    refuse_foreign,
    require_staging,
    targets_of,
)
from semel.store.addresses import plain_address

LONG_AGO = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_libpq(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE", "SEMEL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("postgresql://me:secret@DB.test/shop", "postgresql://DB.test:5432/shop"),
        ("postgres://db.test:5433/shop?password=secret", "postgresql://db.test:5433/shop"),
        ("postgresql+psycopg://me:s%40e@db.test/shop", "postgresql://db.test:5432/shop"),
        ("host=db.test password='sec ret' dbname=shop", "postgresql://db.test:5432/shop"),
        ("postgresql:///shop?host=/run/pg&port=6000", "postgresql://%2Frun%2Fpg:6000/shop"),
        ("mysql+pymysql://me:secret@db/shop?charset=utf8", "mysql://db/shop"),
        ("redis://:secret@127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("amqp://guest:guest@localhost//", "amqp://localhost"),
        ("https://TOKEN@sqs.test/1/queue", "https://sqs.test/1/queue"),
        ("sqlite:////tmp/shop.db", "sqlite:////tmp/shop.db"),
        ("postgresql:///?service=shop", "postgresql://localhost:5432/?service=shop"),
        ("/tmp/shop.db", "sqlite:////tmp/shop.db"),
    ],
)
def test_an_address_has_no_credentials(given: str, plain: str) -> None:
    assert plain_address(given) == plain
    assert plain_address(plain) == plain, "and is its own"


def test_an_address_that_libpq_completes_is_what_it_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    here = plain_address("postgresql:///shop")
    monkeypatch.setenv("PGHOST", "production.test")
    assert plain_address("postgresql:///shop") == "postgresql://production.test:5432/shop" != here


def test_what_was_not_declared_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(NotStaging) as caught:
        require_staging(tmp_path, {"broker": "redis://:secret@127.0.0.1/0"}, command="semel replay r.toml")
    assert "broker redis://127.0.0.1/0" in str(caught.value)
    assert "semel replay r.toml --staging" in caught.value.remedy
    assert "secret" not in str(caught.value)


def test_what_was_declared_is_let_in_and_nothing_else(tmp_path: Path) -> None:
    path = declare(tmp_path, {"broker": "redis://:secret@127.0.0.1/0"}, now=LONG_AGO)
    assert path == tmp_path / ".semel" / "staging.toml"
    assert "secret" not in path.read_text()
    assert tomllib.loads(path.read_text())["target"] == [
        {"address": "redis://127.0.0.1/0", "declared": LONG_AGO}
    ]
    require_staging(tmp_path, {"broker": "redis://127.0.0.1/0"})
    with pytest.raises(NotStaging, match=r"redis://127\.0\.0\.1/1"):
        require_staging(tmp_path, {"broker": "redis://127.0.0.1/0", "other": "redis://127.0.0.1/1"})


def test_declaring_again_keeps_what_was_and_its_date(tmp_path: Path) -> None:
    declare(tmp_path, {"a": "redis://a/0"}, now=LONG_AGO)
    declare(tmp_path, {"a": "redis://a/0", "b": 'redis://b/"0"'})
    declared = read_declared(tmp_path)
    assert set(declared) == {"redis://a/0", 'redis://b/"0"'}
    assert declared["redis://a/0"] == LONG_AGO < declared['redis://b/"0"']


def test_a_file_that_cannot_be_read_lets_nothing_in(tmp_path: Path) -> None:
    (tmp_path / ".semel").mkdir()
    (tmp_path / ".semel" / "staging.toml").write_text("[[target]]\nname = 1")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        require_staging(tmp_path, {"broker": "redis://a/0"})


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_the_project_is_the_nearest_folder_upwards(tmp_path: Path, mark: str) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "a" / mark).mkdir()
    assert project_of(below) == tmp_path / "a"


def test_targets_are_what_is_written_to_and_counted_in(monkeypatch: pytest.MonkeyPatch) -> None:
    description = Description(
        name="charge",
        deliver=CalledFunction(function="shop:charge"),
        watch=Watch(call="shop.provider.charge"),
        message={"order": "{n}"},
        count=CountSql(query="SELECT 1"),
        guard=GuardPlace(table="charges", columns=["order"], database="mysql://me:x@db/shop"),
    )
    with pytest.raises(ConfigurationError, match="database of count is not known"):
        targets_of(description, {})
    monkeypatch.setenv("SEMEL_DATABASE_URL", "postgresql://me:secret@db/shop")
    assert targets_of(description, {"broker": "redis://:x@r/0"}) == {
        "broker": "redis://r/0",
        "function": "function shop:charge",
        "database of count": "postgresql://db:5432/shop",
        "database of guard": "mysql://db/shop",
    }


def test_whatever_is_asked_or_run_is_a_target_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAY_TOKEN", "t-0123456")
    description = Description(
        name="charge",
        deliver=Command(command=["charge", "--auth", "t-0123456", "{order}"]),
        watch=Watch(http="https://me:x@pay.test/v1"),
        message={"order": "{n}"},
        count=CountHttp(url="https://pay.test/charges?order={order}"),
    )
    targets = targets_of(description, {}, guard_database="guard.db")
    assert targets == {
        "command": "command charge --auth ${PAY_TOKEN} {order}",
        "outside system": "https://pay.test/v1",
        "address of count": "https://pay.test/charges",
        "database of guard": f"sqlite:///{Path('guard.db').absolute()}",
    }
    with pytest.raises(NotStaging, match="command charge"):
        require_staging(tmp_path, targets)
    declare(tmp_path, targets)
    require_staging(tmp_path, targets)


def test_an_outside_system_that_replay_answers_for_is_none() -> None:
    description = Description(
        name="charge",
        deliver=CalledFunction(function="shop:charge"),
        watch=Watch(http="https://pay.test", answer={"status": 200}),
        message={"order": "{n}"},
    )
    assert targets_of(description, {}) == {"function": "function shop:charge"}


def test_other_traffic_is_refused_unless_allowed() -> None:
    refuse_foreign([], shared=False)
    refuse_foreign(["3 messages in queue mail"], shared=True)
    with pytest.raises(NotStaging, match="3 messages in queue mail") as caught:
        refuse_foreign(["3 messages in queue mail"], shared=False)
    assert "--shared" in caught.value.remedy
