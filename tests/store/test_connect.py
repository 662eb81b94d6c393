"""URLs as people have them, and what semel adds to them."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from semel import ConfigurationError
from semel.store.connect import connection_string


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+asyncpg", "postgresql+psycopg2"]
)
def test_urls_of_other_libraries_are_taken(scheme):
    parts = conninfo_to_dict(connection_string(f"{scheme}://ada:pw@db:5433/shop?sslmode=require"))
    assert (parts["user"], parts["host"], parts["port"], parts["dbname"], parts["sslmode"]) == (
        *("ada", "db", "5433", "shop"),
        "require",
    )


def test_what_the_url_says_wins_over_what_semel_adds():
    parts = conninfo_to_dict(
        connection_string("postgresql://db/shop?application_name=mine", keepalives_idle="7")
    )
    assert (parts["application_name"], parts["keepalives_idle"]) == ("mine", "7")
    assert conninfo_to_dict(connection_string("postgresql://db/shop"))["application_name"] == "semel"


@pytest.mark.parametrize("wrong", ["mysql://db/shop", "not a url", "postgresql://[db/shop"])
def test_what_is_no_url_is_refused(wrong):
    with pytest.raises(ConfigurationError, match="postgresql://user"):
        connection_string(wrong)
