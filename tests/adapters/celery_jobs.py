"""What Celery's worker runs in the adapters' tests."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

from celery import shared_task
from celery.signals import task_prerun
from tests.adapters import job
from tests.adapters.celery_app import DATABASE, Setup, make_app

import semel
from semel.adapters.celery import GuardedTask, guard

app = make_app(Setup.load())
app.set_current()
once = semel.Once(os.environ[DATABASE])

LATE: dict[str, Any] = {"acks_late": True, "reject_on_worker_lost": True}
AGAIN_SOON: dict[str, Any] = {
    "autoretry_for": (Exception,),
    "retry_kwargs": {"countdown": 1, "max_retries": 20},
}


@app.task(name="unguarded", **LATE)
def unguarded(name: str, amount: int = 100) -> str:
    return job.charge_unguarded(name)


def _register(effect: str, name: str, **options: Any) -> Any:
    return app.task(name=name, **options)(guard(job.declare(once, effect))(job.charge))


charges = {effect: _register(effect, f"charge_{effect}", **LATE, **AGAIN_SOON) for effect in job.effects()}
early = _register("hold", "charge_early")
late_plain = _register("hold", "charge_late_plain", acks_late=True)
"""Lost with its prefork child: Celery acknowledges it then."""
no_retry = _register("hold", "charge_once", **LATE)
ignored = _register("hold", "charge_ignored", ignore_result=True, **LATE)


waits = _register(
    "hold",
    "charge_waits",
    autoretry_for=(semel.errors.DatabaseUnreachable,),
    retry_kwargs={"countdown": 1},
    max_retries=None,
    **LATE,
)
"""As docs/celery.md recommends: it waits for the guard's database."""


@app.task(name="unguarded_late_plain", acks_late=True)
def unguarded_late_plain(name: str, amount: int = 100) -> str:
    return job.charge_unguarded(name)


@app.task(name="charge_limited", soft_time_limit=2, time_limit=60, **LATE)
@guard(job.declare(once, "hold"))
def charge_limited(op: semel.Operation, name: str, amount: int = 100) -> str:
    return job.charge(op, name, amount)


@app.task(name="charge_hard", time_limit=2, acks_late=True)
@guard(job.declare(once, "hold"))
def charge_hard(op: semel.Operation, name: str, amount: int = 100) -> str:
    return job.charge(op, name, amount)


@shared_task(name="charge_shared", bind=True, **LATE)
@guard(job.declare(once, "hold"))
def charge_shared(self: Any, op: semel.Operation, name: str, amount: int = 100) -> str:
    return f"{self.name} {job.charge(op, name, amount)}"


@app.task(name="charge_based", base=GuardedTask, once=job.declare(once, "hold"), **LATE, **AGAIN_SOON)
def charge_based(op: semel.Operation, name: str, amount: int = 100) -> str:
    return job.charge(op, name, amount)


@app.task(
    name="charge_based_bound",
    bind=True,
    base=GuardedTask,
    once=job.declare(once, "hold"),
    max_retries=3,
    **LATE,
)
def charge_based_bound(
    self: Any, op: semel.Operation, name: str, amount: int = 100, retry_at: str = ""
) -> str:
    """Retries by hand, once: before the point of no return, or behind it."""
    job.reach(name, "claimed")
    if retry_at == "before" and self.request.retries == 0:
        raise self.retry(countdown=0.5)
    with op.acting():
        made = job.post("charge", name=name, reference=op.reference)["id"]
        if retry_at == "after" and self.request.retries == 0:
            raise self.retry(countdown=0.5)
        job.reach(name, "effect")
    return op.done(str(made))


def _with_a_note(function: Any) -> Any:
    """Gives the function other arguments than the message has, as Celery's pydantic=True does."""

    @functools.wraps(function)
    def converted(name: str, amount: int = 100, note: Any = None) -> Any:
        return function(name=name, amount=amount, note=_Note(note))

    return converted


class _Note:
    def __init__(self, text: Any) -> None:
        self.text = text


@app.task(name="charge_converted", **LATE)
@_with_a_note
@guard(job.declare(once, "hold"))
def charge_converted(op: semel.Operation, name: str, amount: int = 100, note: Any = None) -> str:
    return job.charge(op, name, amount)


@app.task(name="charge_noted", **LATE)
@guard(job.declare(once, "hold"))
def charge_noted(op: semel.Operation, name: str, amount: int = 100, note: Any = None) -> str:
    return job.charge(op, name, amount)


@app.task(name="calls_another", **LATE)
def calls_another(customer: str) -> str:
    """Calls a guarded task's function by itself, as a part of its own work."""
    try:
        return str(charge_noted.run(customer))
    except semel.InProgress:
        return "in progress"


part = job.declare(once, "hold")(job.charge)
"""A guarded function that is no task."""


def _whole(op: semel.Operation, name: str) -> str:
    """An operation that asks for another one, before its own point of no return."""
    made = part(f"{name}-part")
    with op.acting():
        job.post("charge", name=name, reference=op.reference)
    return op.done(made)


_whole_guard = guard(once.operation("whole", key="name", payload=(), acting="explicit"))
app.task(name="whole", **LATE)(_whole_guard(_whole))
app.task(name="whole_retried", **LATE, **AGAIN_SOON)(_whole_guard(_whole))


@app.task(name="slot", **LATE)
@guard(once.operation("slot", key=("schedule", "slot"), acting="explicit"))
def run_slot(op: semel.Operation, schedule: str, slot: str) -> str:
    with op.acting():
        job.post("charge", name=f"{schedule}-{slot}", reference=op.reference)
    return op.done(slot)


@app.task(name="step", **LATE)
def step(before: Any, name: str = "") -> Any:
    """A next step, unguarded: it runs as often as it is dispatched."""
    job.post("charge", name=name, reference=name)
    return before


@app.task(name="total", **LATE)
def total(results: list[Any], name: str = "") -> int:
    job.post("charge", name=name, reference=name)
    return len(results)


@task_prerun.connect
def note(task: Any, args: Any, kwargs: Any, **_: Any) -> None:
    """Tell the stage what a delivery looks like, where the test asks."""
    if not os.environ.get("SEMEL_TEST_NOTES"):
        return
    request = task.request
    told = {
        "id": request.id,
        "retries": request.retries,
        "headers": request.headers,
        "priority": (request.delivery_info or {}).get("priority"),
        "exchange": (request.delivery_info or {}).get("exchange"),
        "routing_key": (request.delivery_info or {}).get("routing_key"),
        "expires": request.expires,
        "shadow": request.shadow,
        "timelimit": request.timelimit,
        "root_id": request.root_id,
        "callbacks": len(request.callbacks or ()),
        "chain": len(request.chain or ()),
        "ignore_result": request.ignore_result,
        "args": list(args),
        "kwargs": kwargs,
    }
    name = kwargs.get("name") or (args[0] if args else "")
    job.reach(str(name), "received", json.dumps(told, default=str))
