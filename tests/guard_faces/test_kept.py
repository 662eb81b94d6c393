"""How long records count: as the application deletes them, and never longer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import semel


@pytest.fixture
def app(database_url: str) -> semel.App:
    return semel.App(database_url, keep_operations="30 days")


def test_a_dated_operation_is_too_old_once_the_application_has_deleted_its_record(app: semel.App) -> None:
    once = semel.Once(app)

    @once.operation("charge", key="day", dated="day")
    def charge(op: semel.Operation, day: datetime) -> str:
        return "charged"

    assert charge(datetime.now(UTC) - timedelta(days=28)) == "charged"
    with pytest.raises(semel.TooOld):
        charge(datetime.now(UTC) - timedelta(days=31))
    once.close()


def test_records_cannot_count_for_longer_than_they_are_kept(app: semel.App) -> None:
    once = semel.Once(app)
    with pytest.raises(semel.ConfigurationError, match="deletes records after 30 days"):
        once.operation("charge", key="day", dated="day", keep="31 days")
    once.operation("charge", key="day", dated="day", keep="29 days")
    once.close()
