"""A module with guarded functions on every queue, as a user would have it, made anew for each test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

SHOP = '''
from datetime import date
from decimal import Decimal
from enum import Enum
from uuid import UUID

import semel
from celery import Celery
from semel.adapters.celery import guard
from semel.adapters.sqs import Consumer, Inbox, lambda_handler

app = semel.App()
queued = semel.Once(app)
once = semel.Once("shop.db")
celery = Celery("shop", broker="redis://localhost")
celery.conf.beat_schedule = {"nightly": {"task": "shop.settle", "schedule": 3600}}


class Size(Enum):
    SMALL = "small"


@app.schedule("0 2 * * *", tz="Europe/London", name="nightly", arguments={"order_id": 1, "amount": 5})
@app.job(
    queue="money",
    once=queued.operation(
        "charge-order", key="order_id", payload=("amount",), effect=semel.ProviderKey(valid_for="24 h"), acting="explicit"
    ),
)
def charge_order(op: semel.Operation, order_id: int, amount: int, note: str = "") -> str:
    """Charge the customer's card for an order."""
    return ""


@app.job
def unguarded(order_id: int) -> None: ...


@once.operation("mail", key=lambda customer, day: (customer, day), effect=semel.AcceptDuplicate(), lease="2 min")
def mail(op: semel.Operation, customer: int, day: date) -> None: ...


@once.operation("many", key=("size", "what", "price"), payload=())
def many(op: semel.Operation, size: Size, what: UUID, price: Decimal) -> None: ...


@once.operation("opaque", key="thing")
def opaque(op: semel.Operation, thing) -> None: ...


@once.operation("missed", key="order_id", effect=semel.AcceptMiss(), acting="explicit")
def missed(op: semel.Operation, order_id: int) -> None: ...


@once.operation("rows", key="order_id", effect=semel.Row())
def rows(op: semel.Operation, order_id: int) -> None: ...


SECRET = semel.Once("secret.db", secret=semel.Secret(b"0123456789abcdef"))


@SECRET.operation("private", key="phone")
def private(op: semel.Operation, phone: str) -> None: ...


@celery.task(name="shop.settle", shared=False, autoretry_for=(Exception,))
@guard(once.operation("settle", key="order_id", effect=semel.Lookup(print, settle="30 s"), acting="explicit"))
def settle(op: semel.Operation, order_id: int) -> None: ...


consumer = Consumer("orders", mail)
both = Consumer("orders", {"a": mail, "b": missed}, kind="type")
looped = Inbox("returns").handler(missed)
on_lambda = lambda_handler(missed)
'''


@pytest.fixture
def make_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Writes the module ``shop`` and imports it anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("SEMEL_APP", "SEMEL_DATABASE_URL", "SEMEL_SCHEMA"):
        monkeypatch.delenv(name, raising=False)

    def make(text: str) -> ModuleType:
        (tmp_path / "shop.py").write_text(text, "utf-8")
        sys.modules.pop("shop", None)
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            return importlib.import_module("shop")
        finally:
            sys.dont_write_bytecode = before

    yield make
    sys.modules.pop("shop", None)


@pytest.fixture
def shop(make_module: Callable[[str], ModuleType]) -> ModuleType:
    return make_module(SHOP)
