"""The decorator and the base class without a broker: signatures, eager and direct calls, refusals, what is kept."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from celery import Celery, Task, current_app
from celery.app.task import Context

import semel
from semel.adapters.celery import GuardedTask, find_guarded, guard
from semel.adapters.celery.answers import wait_for
from semel.adapters.celery.message import keep, publish
from semel.errors import ConfigurationError
from semel.guard.declaration import to_message
from semel.store.guard_tables import create_tables


@pytest.fixture
def once(tmp_path: Path) -> Iterator[semel.Once]:
    path = tmp_path / "semel.db"
    create_tables(path)
    made = semel.Once(str(path))
    yield made
    made.close()


@pytest.fixture
def app() -> Iterator[Celery]:
    before = current_app._get_current_object()
    made = Celery("shop", broker="memory://", backend="cache+memory://", set_as_current=False)
    yield made
    made.close()
    before.set_current()


def charging(once: semel.Once, **options: Any) -> Any:
    return once.operation("charge", key="order", payload=("amount",), acting="explicit", **options)


def make_tasks(app: Celery, once: semel.Once) -> dict[str, Task]:
    """One task by each way there is."""

    @app.task(shared=False, name="plain")
    @guard(charging(once))
    def plain(op: semel.Operation, order: int, amount: int = 1) -> str:
        with op.acting():
            return op.done(f"{order} for {amount}")

    @app.task(shared=False, name="bound", bind=True)
    @guard(charging(once))
    def bound(self: Task, op: semel.Operation, order: int, amount: int = 1) -> str:
        with op.acting():
            return op.done(f"{self.name} {order} for {amount}")

    @app.task(shared=False, name="based", base=GuardedTask, once=charging(once))
    def based(op: semel.Operation, order: int, amount: int = 1) -> str:
        with op.acting():
            return op.done(f"{order} for {amount}")

    @app.task(shared=False, name="based bound", base=GuardedTask, bind=True, once=charging(once))
    def based_bound(self: Task, op: semel.Operation, order: int, amount: int = 1) -> str:
        with op.acting():
            return op.done(f"{self.name} {order} for {amount}")

    guarding = charging(once)

    class Charge(GuardedTask):
        name = "class"
        once = guarding

        def run(self, op: semel.Operation, order: int, amount: int = 1) -> str:
            with op.acting():
                return op.done(f"{self.name} {order} for {amount}")

    app.register_task(Charge())
    app.finalize()
    return {name: app.tasks[name] for name in ("plain", "bound", "based", "based bound", "class")}


def test_senders_see_the_signature_without_the_operation(app: Celery, once: semel.Once) -> None:
    for name, task in make_tasks(app, once).items():
        assert list(inspect.signature(task.run).parameters)[-2:] == ["order", "amount"]
        assert "op" not in inspect.signature(task.run).parameters
        if name == "class":
            continue  # Celery checks the arguments of functions only
        task.__header__(42)
        task.__header__(42, amount=3)
        for wrong in ((), (1, 2, 3)):
            with pytest.raises(TypeError):
                task.apply_async(wrong)
        with pytest.raises(TypeError):
            task.apply_async((1,), {"op": 2})


def test_a_direct_call_and_an_eager_one_are_deliveries_of_one_operation(
    app: Celery, once: semel.Once
) -> None:
    for number, (name, task) in enumerate(make_tasks(app, once).items()):
        expected = f"{number} for 5" if name in ("plain", "based") else f"{name} {number} for 5"
        assert task(number, amount=5) == expected
        assert task.apply((number,), {"amount": 5}).get() == expected
        found = find_guarded(task)
        assert found is not None
        assert found.declaration.job_type == "charge"


def test_an_eager_call_raises_the_guards_answers(app: Celery, once: semel.Once) -> None:
    task = make_tasks(app, once)["based"]
    task(1, amount=5)
    app.conf.task_always_eager = True
    app.conf.task_eager_propagates = True
    assert task.delay(1, amount=5).get() == "1 for 5"
    with pytest.raises(semel.PayloadMismatch):
        task.delay(1, amount=6)


def test_an_eager_retry_before_acting_runs_again(app: Celery, once: semel.Once) -> None:
    tries: list[int] = []

    @app.task(shared=False, bind=True, base=GuardedTask, once=charging(once))
    def charge(self: Task, op: semel.Operation, order: int, amount: int = 1) -> str:
        tries.append(self.request.retries)
        if self.request.retries == 0:
            raise self.retry(countdown=0)
        with op.acting():
            return op.done("done")

    assert charge.apply((1,)).get() == "done"
    assert tries == [0, 1]


def test_a_function_without_an_operation(app: Celery, once: semel.Once) -> None:
    @app.task(shared=False, bind=True)
    @guard(once.operation("plain", key="order", with_operation=False))
    def charge(self: Task, order: int) -> int:
        return order + len(self.name) * 0

    assert charge(7) == 7
    assert list(inspect.signature(charge.run).parameters) == ["order"]


def test_autoretry_is_outside_of_both(app: Celery, once: semel.Once) -> None:
    @app.task(shared=False, base=GuardedTask, once=charging(once), autoretry_for=(Exception,))
    def based(op: semel.Operation, order: int, amount: int = 1) -> None: ...

    @app.task(shared=False, autoretry_for=(Exception,))
    @guard(charging(once))
    def decorated(op: semel.Operation, order: int, amount: int = 1) -> None: ...

    for task in (based, decorated):
        assert find_guarded(task) is not None
        inner = task._orig_run
        assert getattr(inner, "semel_guarded", None) is not None
        assert not hasattr(Task, "_orig_run")


def test_what_cannot_be_guarded_is_refused_where_it_is_declared(app: Celery, once: semel.Once) -> None:
    with pytest.raises(ConfigurationError, match="no once="):

        @app.task(shared=False, base=GuardedTask, lazy=False)
        def nothing(op: semel.Operation, order: int) -> None: ...

    with pytest.raises(ConfigurationError, match="to be guarded by"):
        guard("charge")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="async def"):

        @guard(charging(once))
        async def later(op: semel.AsyncOperation, order: int, amount: int) -> None: ...

    with pytest.raises(ConfigurationError, match="no operation behind its task"):

        @guard(charging(once))
        def only_self(self: Task) -> None: ...


ARGUMENTS = {
    "plain": {"order": 1, "emoji": "\U0001f600", "umlaut": "ä"},
    "types": {
        "at": datetime(2030, 1, 2, tzinfo=UTC),
        "amount": Decimal("1.10"),
        "id": UUID(int=7),
        "none": None,
        "deep": {"a": [1, {"b": 2.5}]},
    },
    "nul": {"text": "a\x00b"},
    "half a pair": {"text": "\ud83d"},
    "no number": {"text": float("inf")},
}


@pytest.mark.parametrize("kwargs", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_what_is_kept_is_what_is_published(
    app: Celery, kwargs: dict[str, Any], serializer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    @app.task(shared=False, name="any", serializer=serializer)
    def anything(*args: Any, **kwargs: Any) -> None: ...

    anything.push_request(
        **vars(
            Context(
                id="the-id",
                retries=2,
                delivery_info={"exchange": "", "routing_key": "urgent", "priority": 4, "redelivered": True},
                timelimit=[60, 50],
                args=[1],
                kwargs=kwargs,
                called_directly=False,
            )
        )
    )
    try:
        kept = keep(app.tasks["any"])
    finally:
        anything.pop_request()
    assert kept is not None
    text = to_message("celery", **kept)
    if serializer == "json":
        assert ("packed" in kept) == ("text" in kwargs)
    assert "\\u0000" not in text
    monkeypatch.setattr(app, "send_task", lambda name, *call, **options: sent.append((name, *call, options)))
    publish(app, json.loads(text), countdown=3)
    ((name, args, got, options),) = sent
    assert (name, list(args), got) == ("any", [1], kwargs)
    assert options["task_id"] == "the-id"
    assert (options["queue"], options["priority"], options["retries"], options["countdown"]) == (
        "urgent",
        4,
        2,
        3,
    )
    assert (options["time_limit"], options["soft_time_limit"], options["serializer"]) == (60, 50, serializer)
    assert "redelivered" not in options


@pytest.mark.parametrize(
    ("left", "visibility", "least", "most"),
    [(30, None, 30, 33), (600, None, 60, 66), (-1, None, 0.1, 0.11), (30, 10, 4.5, 4.95), (30, 3600, 30, 33)],
)
def test_how_long_a_message_waits(
    app: Celery, left: float, visibility: float | None, least: float, most: float
) -> None:
    if visibility is not None:
        app.conf.broker_transport_options = {"visibility_timeout": visibility}
    for _ in range(50):
        assert least <= wait_for(app, timedelta(seconds=left)) <= most + 1e-9
