"""What people's lists and retention cost beside many completed operations: an index, never the whole table."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from semel.sql import Catalogue

FILTER: dict[str, Any] = dict.fromkeys(
    ("job_type", "scope", "label", "key", "changed_before", "changed_after", "idle", "unclaimed", "before_id")
)
FILL = """
INSERT INTO semel.operations (job_type, key, state, outcome, claimed_at, lease_until, reference, reference_at, effect,
       completed_at, token)
SELECT 'charge', sha256(CAST(CAST(n AS text) AS bytea)), CASE WHEN n % 5000 = 0 THEN 'held' ELSE 'completed' END,
       CASE WHEN n % 5000 = 0 THEN NULL ELSE 'acted' END, now(), now(), 'r', now(), 'hold',
       CASE WHEN n % 5000 = 0 THEN NULL ELSE now() - n * interval '1 s' END, 't'
  FROM generate_series(1, 50000) AS n
"""


@pytest.mark.parametrize(
    ("name", "parameters", "literals", "index"),
    [
        ("list_operations", FILTER, {"states": "'held'", "limit": "50"}, "operations_open"),
        ("list_operations", FILTER, {"states": "'claimed', 'released'", "limit": "50"}, "operations_open"),
        ("count_operations", FILTER, {"states": "'held'"}, "operations_open"),
        ("count_stale", {"idle": 600.0}, {}, "operations_open"),
        ("purge_completed", {"keep": 49_900.0}, {}, "operations_completed"),
        ("purge_released", {"keep": 1.0}, {}, "operations_open"),
        ("lock_operation", {"id": 77}, {}, "operations_pkey"),
        ("operation_events", {"id": 77}, {}, "operation_events_operation_id"),
    ],
)
def test_an_index_serves(
    database_url: str, name: str, parameters: dict[str, Any], literals: dict[str, str], index: str
) -> None:
    text = Catalogue("semel").text(f"guard/{name}", **literals).named
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(FILL)
        connection.execute(
            "INSERT INTO semel.operation_events (operation_id, scope, job_type, event, claim) "
            "SELECT n, '', 'charge', 'refused', 1 FROM generate_series(1, 20000) AS n"
        )
        connection.execute("ANALYZE semel.operations, semel.operation_events")
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {text}", parameters))
    assert index in plan, plan
    assert "Seq Scan" not in plan, plan
