"""The shop of examples/ by itself, as its README runs it, and its payment provider."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(autouse=True)
def examples_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def run_shop(database: str, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=EXAMPLES,
        env={**os.environ, "SEMEL_DATABASE_URL": database, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def a_charge(**changes: Any) -> dict[str, Any]:
    return {"order": 1, "card": "card-1", "amount": 100, "reference": "r-1"} | changes


def test_the_provider_honours_an_idempotency_key_for_a_while() -> None:
    from shop.provider import Provider

    key = {"Idempotency-Key": "k-1"}
    with Provider(remembers=3600) as provider:
        first = ask(provider.port, "POST", "/charges", a_charge(), **key)
        assert first == ask(provider.port, "POST", "/charges", a_charge(), **key)
        assert first[0] == 201
        assert len(provider.charges) == 1
        ask(provider.port, "POST", "/charges", a_charge())
        assert len(provider.charges) == 2
    with Provider(remembers=0) as provider:
        for _ in range(2):
            ask(provider.port, "POST", "/charges", a_charge(), **key)
        assert len(provider.charges) == 2


def test_the_provider_can_be_asked_by_reference() -> None:
    from shop.provider import Provider

    with Provider() as provider:
        assert ask(provider.port, "GET", "/charges?reference=r-1") == (200, {"charges": []})
        _, made = ask(provider.port, "POST", "/charges", a_charge())
        assert ask(provider.port, "GET", "/charges?reference=r-1") == (200, {"charges": [made]})
        assert ask(provider.port, "GET", "/cards/card-1") == (200, {"card": "card-1"})
        assert ask(provider.port, "POST", "/charges", a_charge(card="empty-1"))[0] == 402
        assert ask(provider.port, "GET", "/")[0] == 404


def test_the_provider_can_lose_an_answer_behind_a_charge() -> None:
    from shop.provider import CHARGED, RECEIVED, Provider

    with Provider(fault=lambda point, card: point != CHARGED) as provider:
        assert ask(provider.port, "POST", "/charges", a_charge())[0] == 504
        assert len(provider.charges) == 1
    with Provider(fault=lambda point, card: point != RECEIVED) as provider:
        assert ask(provider.port, "POST", "/charges", a_charge())[0] == 504
        assert provider.charges == []


def test_orders_are_charged_by_the_readmes_commands(database_url: str) -> None:
    from shop.provider import CHARGED, Provider

    lost: list[str] = []

    def lose_the_first(point: str, card: str) -> bool:
        if point != CHARGED or card in lost:
            return True
        lost.append(card)
        return False

    with Provider(fault=lose_the_first) as provider:
        for kind in ("charge_order", "charge_order_with_key", "charge_order_or_hold"):
            taken = run_shop(database_url, "shop", kind, f"card-{kind}", "1999")
            assert (taken.returncode, taken.stderr) == (0, "")
        refused = run_shop(database_url, "shop", "charge_order_with_key", "empty-1", "5")
        assert refused.returncode == 0
        told = {"SHOP_PROVIDER": f"127.0.0.1:{provider.port}", "SHOP_SPEED": "50"}
        for _ in range(12):
            run_shop(database_url, "semel.cli", "worker", "shop.jobs:app", "--drain", **told)
            with psycopg.connect(database_url) as connection:
                rows = connection.execute("SELECT status FROM semel.jobs").fetchall()
            if {status for (status,) in rows} <= {"held", "failed"}:
                break
        charged = [charge.card for charge in provider.charges]
    assert charged.count("card-charge_order") == 2
    assert charged.count("card-charge_order_with_key") == 1
    assert charged.count("card-charge_order_or_hold") == 1
    held = run_shop(database_url, "semel.cli", "held", "list", "--json")
    (operation,) = json.loads(held.stdout)["operations"]
    assert operation["job_type"] == "charge-order-or-hold"
    with psycopg.connect(database_url) as connection:
        states = connection.execute("SELECT job_type, state FROM semel.operations ORDER BY id").fetchall()
    assert ("charge-order-with-key", "released") in states, "a refused card was certainly not charged"


def test_a_job_that_is_none_is_said(database_url: str) -> None:
    done = run_shop(database_url, "shop", "charge_it", "card-1", "1999")
    assert done.returncode == 2
    assert "charge_order_with_lookup" in done.stderr
