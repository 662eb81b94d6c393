"""An application: its settings, its database, its schedules."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import get_type_hints

import psycopg
import pytest

import semel
from semel import App, ArgumentError, ConfigurationError, Job, SchemaMismatch, Settings
from semel.queue.app import SettingsOverrides
from semel.store.migrate import migrate_database


@pytest.fixture
def lonely(monkeypatch) -> App:
    monkeypatch.delenv("SEMEL_DATABASE_URL", raising=False)
    return App()


class TestSettings:
    def test_are_given_by_name_in_words(self):
        app = App("postgresql://x/y", lease="2 min", keep_done=timedelta(days=7), timeout=90, concurrency=5)
        assert app.settings == Settings(
            lease=timedelta(minutes=2),
            keep_done=timedelta(days=7),
            timeout=timedelta(seconds=90),
            concurrency=5,
        )

    def test_override_those_that_are_given_whole(self):
        app = App("postgresql://x/y", settings=Settings(concurrency=3, max_attempts=2), concurrency=4)
        assert (app.settings.concurrency, app.settings.max_attempts) == (4, 2)

    @pytest.mark.parametrize(
        "wrong", [{"leese": 1}, {"lease": "long"}, {"concurrency": 0}, {"concurrency": "2"}]
    )
    def test_that_cannot_be_right_are_refused_by_name(self, wrong):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            App("postgresql://x/y", **wrong)

    def test_every_one_can_be_overridden(self):
        assert get_type_hints(SettingsOverrides).keys() == get_type_hints(Settings).keys()

    def test_a_schema_must_be_a_plain_name(self):
        with pytest.raises(ConfigurationError):
            App(schema='jobs"; DROP')


class TestDatabase:
    def test_is_the_one_given_else_the_environments(self, monkeypatch):
        monkeypatch.setenv("SEMEL_DATABASE_URL", "postgresql://from/environment")
        assert App("postgresql://given/one").url == "postgresql://given/one"
        assert App().url == "postgresql://from/environment"

    def test_else_the_embedded_server_started_and_migrated_once(
        self, lonely, monkeypatch, empty_database_url, caplog
    ):
        calls = []

        def ensure_running():
            calls.append(1)
            return empty_database_url

        monkeypatch.setattr("semel.embedded.ensure_running", ensure_running)

        @lonely.job
        def charge(order: int) -> None: ...

        with caplog.at_level(logging.INFO, "semel"), lonely:
            assert not calls
            assert charge.enqueue(1).created
            asyncio.run(charge.aenqueue(2))
            assert lonely.url == empty_database_url
        assert len(calls) == 1
        assert [record for record in caplog.records if "for development" in record.message][1:] == []
        assert "SEMEL_DATABASE_URL" in caplog.text

    def test_without_tables_says_how_to_make_them(self, empty_database_url):
        with App(empty_database_url) as app:

            @app.job
            def charge() -> None: ...

            for call in (charge.enqueue, lambda: charge.enqueue_many([()])):
                with pytest.raises(SchemaMismatch, match="semel migrate"):
                    call()

    def test_may_use_another_schema(self, empty_database_url):
        migrate_database(empty_database_url, schema="work")
        with App(empty_database_url, schema="work") as app:

            @app.job
            def charge(order: int) -> None: ...

            charge.enqueue(0)
            charge.enqueue_many([(number,) for number in range(1, 1_500)])
            charge.using(unique_key="k").enqueue_many([(1,), (2,)])
        with psycopg.connect(empty_database_url) as connection:
            assert connection.execute("SELECT count(*) FROM work.jobs").fetchone() == (1_501,)

    def test_can_be_changed_for_tests(self, app, charge, create_database):
        elsewhere = create_database()
        with app.with_database(elsewhere, payload_limit=100) as copy:
            assert copy.jobs["charge"].enqueue(1).id == 1
            assert copy.settings.payload_limit == 100
            with pytest.raises(ArgumentError):
                copy.jobs["charge"].enqueue(1, "n" * 100)
            assert copy.schedules == app.schedules
        with psycopg.connect(elsewhere) as connection:
            assert connection.execute("SELECT count(*) FROM semel.jobs").fetchone() == (1,)
        charge.enqueue(1, "n" * 100)

    def test_can_be_used_again_after_close(self, app, charge):
        charge.enqueue(1)
        app.close()
        assert charge.enqueue(1).created


class TestSchedules:
    def test_stand_above_or_below_the_job(self, lonely):
        @lonely.schedule("0 3 * * *", tz="Europe/Rome", arguments={"day": "all"})
        @lonely.job(queue="night")
        def above(day: str) -> None: ...

        @lonely.job
        @lonely.schedule(every="10 min")
        def below() -> None: ...

        assert isinstance(above, Job)
        assert isinstance(below, Job)
        assert list(lonely.schedules) == ["above", "below"]
        scheduled = lonely.schedules["above"]
        assert (scheduled.kind, scheduled.payload, scheduled.options.queue) == (
            "above",
            b'{"day":"all"}',
            "night",
        )
        assert (scheduled.schedule.expression, scheduled.schedule.tz) == ("0 3 * * *", "Europe/Rome")
        assert lonely.schedules["below"].schedule.every == timedelta(minutes=10)

    def test_several_on_one_job_need_names(self, lonely):
        with pytest.raises(ConfigurationError, match="name of its own"):

            @lonely.job
            @lonely.schedule("0 3 * * *")
            @lonely.schedule("0 4 * * *")
            def twice() -> None: ...

        @lonely.job
        @lonely.schedule("0 3 * * *", name="early", missed="all")
        @lonely.schedule("0 4 * * *", name="late", missed="skip")
        def named() -> None: ...

        assert {"early", "late"} <= lonely.schedules.keys()

    def test_are_checked_when_declared(self, lonely):
        @lonely.job
        def report(day: str) -> None: ...

        for wrong in (
            {"expression": "every day"},
            {"expression": "0 3 * * *", "every": 5},
            {"every": "0.1 s"},
            {"expression": "0 3 * * *", "tz": "Mars/Phobos"},
            {"expression": "0 3 * * *", "missed": "some", "arguments": {"day": "x"}},
        ):
            with pytest.raises(ConfigurationError):
                lonely.schedule(**{"name": "wrong", **wrong})(report)
        with pytest.raises(ArgumentError) as caught:
            lonely.schedule("0 3 * * *")(report)
        assert caught.value.argument == "day"
        assert not lonely.schedules

    def test_without_a_job_are_an_error_that_names_the_function(self, lonely):
        @lonely.schedule("0 3 * * *")
        def forgotten() -> None: ...

        with pytest.raises(ConfigurationError, match="forgotten"):
            _ = lonely.schedules

    def test_of_another_applications_job_are_refused(self, lonely):
        @App("postgresql://x/y").job
        def foreign() -> None: ...

        with pytest.raises(ConfigurationError, match="another application"):
            lonely.schedule("0 3 * * *")(foreign)


def test_every_public_name_is_there():
    assert sorted(semel.__all__) == sorted(set(semel.__all__))
    assert all(hasattr(semel, name) for name in semel.__all__)
