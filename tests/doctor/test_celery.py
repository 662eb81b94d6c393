"""What `semel doctor --celery` finds: the numbers against each other, read from real applications, and the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from tests.docs.pages import ROOT

import semel
from semel.adapters.celery import GuardedTask, guard
from semel.doctor.celery import COUNTS, CeleryNumbers, TaskNumbers, check
from semel.doctor.celery_reading import read_celery
from semel.doctor.celery_words import WORDS
from semel.doctor.finding import Severity, in_order

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
TASK = TaskNumbers(
    name="charge",
    lease=HOUR,
    longest_run=10 * MINUTE,
    time_limit=10 * MINUTE,
    soft_time_limit=9 * MINUTE,
)
REDIS = CeleryNumbers(transport="redis", prefetch_multiplier=1, tasks=(TASK,))
RABBIT = CeleryNumbers(transport="amqp", tasks=(TASK,))
ALWAYS = {"celery-visibility-shared", "celery-next-steps"}
"""Notes that each application on Redis with a guarded task gets."""


def codes(app: CeleryNumbers) -> set[str]:
    return {finding.code for finding in check(app)}


def on(app: CeleryNumbers, **task: Any) -> CeleryNumbers:
    return replace(app, tasks=(replace(TASK, **task),))


def test_what_fits_gets_notes_only() -> None:
    assert codes(REDIS) == ALWAYS
    assert codes(RABBIT) == {"celery-next-steps"}
    assert all(finding.is_fine for app in (REDIS, RABBIT) for finding in check(app))


FOUND: dict[str, tuple[str, CeleryNumbers, CeleryNumbers]] = {
    "C1: a far date": (
        "celery-visibility-eta",
        replace(REDIS, eta_horizon=timedelta(hours=8)),
        replace(REDIS, eta_horizon=50 * MINUTE),
    ),
    "C1: a far retry": (
        "celery-visibility-eta",
        on(REDIS, retry_delay=2 * HOUR),
        on(REDIS, retry_delay=MINUTE),
    ),
    "C3, C36: the run is longer than the time between deliveries": (
        "celery-visibility-run",
        on(replace(REDIS, visibility_places={COUNTS: 9 * MINUTE})),
        on(replace(REDIS, visibility_places={COUNTS: 11 * MINUTE})),
    ),
    "C4: set where it does not count": (
        "celery-visibility-place",
        replace(REDIS, visibility_places={"visibility_timeout": 12 * HOUR}),
        replace(REDIS, visibility_places={COUNTS: 12 * HOUR}),
    ),
    "C4: set to different values": (
        "celery-visibility-place",
        replace(REDIS, visibility_places={COUNTS: 12 * HOUR, "result_backend_transport_options": HOUR}),
        replace(REDIS, visibility_places={COUNTS: HOUR, "result_backend_transport_options": HOUR}),
    ),
    "C5": (
        "celery-consumer-timeout",
        on(RABBIT, longest_run=40 * MINUTE),
        on(replace(RABBIT, consumer_timeout=HOUR), longest_run=40 * MINUTE),
    ),
    "C5: a far date": ("celery-consumer-timeout", replace(RABBIT, eta_horizon=HOUR), RABBIT),
    "C6: an early acknowledgement": ("celery-early-ack", on(RABBIT, acks_late=False), RABBIT),
    "C6: a killed child": ("celery-worker-lost", on(RABBIT, reject_on_worker_lost=False), RABBIT),
    "the guard's database is lost": (
        "celery-database-lost",
        on(RABBIT, waits_for_database=False),
        on(RABBIT, waits_for_database=False, acks_on_failure=False),
    ),
    "the guard's database is lost, and the message was acknowledged before": (
        "celery-database-lost",
        on(RABBIT, waits_for_database=False, acks_late=False, acks_on_failure=False),
        on(RABBIT, acks_late=False),
    ),
    "the provider forgets the key before the broker delivers again": (
        "celery-provider-window",
        on(REDIS, valid_for=70 * MINUTE),
        on(REDIS, valid_for=71 * MINUTE),
    ),
    "the provider forgets the key before a retry": (
        "celery-provider-window",
        on(RABBIT, valid_for=HOUR, retry_delay=50 * MINUTE),
        on(RABBIT, valid_for=HOUR, retry_delay=49 * MINUTE),
    ),
    "C11": ("celery-deduplicates", replace(RABBIT, deduplicates=True), RABBIT),
    "C12": ("celery-prefetch", replace(REDIS, prefetch_multiplier=7), replace(REDIS, prefetch_multiplier=5)),
    "C12: countdown and prefetch": (
        "celery-prefetch",
        on(replace(REDIS, prefetch_multiplier=5), retry_delay=11 * MINUTE),
        on(replace(REDIS, prefetch_multiplier=5), retry_delay=9 * MINUTE),
    ),
    "C12: no limit": ("celery-prefetch", replace(REDIS, prefetch_multiplier=0), REDIS),
    "a limit over the lease": (
        "celery-limit-over-lease",
        on(RABBIT, time_limit=2 * HOUR),
        on(RABBIT, time_limit=HOUR),
    ),
    "a limit over the longest run that is extended": (
        "celery-limit-over-lease",
        on(RABBIT, extend=True, time_limit=11 * MINUTE),
        on(RABBIT, extend=True, lease=MINUTE),
    ),
    "no limit": ("celery-no-limit", on(RABBIT, time_limit=None, soft_time_limit=None), RABBIT),
    "a soft limit that comes too late": ("celery-soft-limit", on(RABBIT, soft_time_limit=HOUR), RABBIT),
    "no soft limit": ("celery-no-soft-limit", on(RABBIT, soft_time_limit=None), RABBIT),
    "a whole worker is killed": ("celery-recovery", on(REDIS, lease=20 * MINUTE), REDIS),
    "failures are rejected": ("celery-failure-rejects", on(RABBIT, acks_on_failure=False), RABBIT),
    "retention": (
        "celery-retention",
        replace(on(REDIS, keep=timedelta(days=1)), eta_horizon=timedelta(days=2)),
        replace(on(REDIS, keep=timedelta(days=3)), eta_horizon=timedelta(days=2)),
    ),
    "nothing is guarded": ("celery-nothing-guarded", replace(RABBIT, tasks=()), RABBIT),
    "eager": ("celery-eager", replace(RABBIT, always_eager=True), RABBIT),
    "a shared broker": ("celery-visibility-shared", REDIS, RABBIT),
    "next steps": ("celery-next-steps", RABBIT, replace(RABBIT, tasks=())),
}


@pytest.mark.parametrize(("code", "wrong", "right"), FOUND.values(), ids=FOUND)
def test_it_is_found_where_it_is_and_only_there(
    code: str, wrong: CeleryNumbers, right: CeleryNumbers
) -> None:
    assert code in codes(wrong)
    assert code not in codes(right)


def test_rows_need_no_limits() -> None:
    assert "celery-no-limit" not in codes(on(RABBIT, in_row=True, time_limit=None))


def test_the_worst_comes_first() -> None:
    app = on(REDIS, time_limit=2 * HOUR, acks_late=False)
    ranks = [finding.severity for finding in in_order(check(app))]
    assert ranks == sorted(ranks, key=list(Severity).index)
    assert ranks[0] is Severity.ERROR


def test_every_code_is_described() -> None:
    written = set(WORDS)
    described = set(
        re.findall(r"^\| `(celery-[a-z-]+)` \|", (ROOT / "docs/doctor.md").read_text("utf-8"), re.M)
    )
    assert written == described == {code for code, _, _ in FOUND.values()}


@pytest.mark.parametrize(
    ("broker", "transport"),
    [
        ("redis://127.0.0.1:1/0", "redis"),
        ("rediss://127.0.0.1:1/0", "redis"),
        ("sentinel://127.0.0.1:1", "redis"),
        ("amqp://127.0.0.1:1//", "amqp"),
        ("pyamqp://127.0.0.1:1//", "amqp"),
        ("sqs://", "sqs"),
        ("memory://", "memory"),
    ],
)
def test_the_broker_is_known_without_asking_it(broker: str, transport: str) -> None:
    app = Celery(broker=broker, set_as_current=False)
    assert read_celery(app).transport == transport
    app.close()


def test_an_application_is_read(tmp_path: Path) -> None:
    app = Celery(broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.update(
        broker_transport_options={"visibility_timeout": 120},
        result_backend_transport_options={"visibility_timeout": 60},
        visibility_timeout=30,
        task_acks_late=True,
        task_time_limit=50,
        worker_prefetch_multiplier=3,
        worker_deduplicate_successful_tasks=True,
    )
    once = semel.Once(str(tmp_path / "semel.db"))

    @app.task(shared=False, name="one", soft_time_limit=40, autoretry_for=(OSError,), retry_backoff=True)
    @guard(once.operation("one", key="n", lease=45, longest_run=30, keep="9 days"))
    def one(op: semel.Operation, n: int) -> None: ...

    @app.task(shared=False, name="plain")
    def plain() -> None: ...

    read = read_celery(app, eta_horizon=HOUR, consumer_timeout=None)
    assert (read.prefetch_multiplier, read.deduplicates, read.eta_horizon) == (3, True, HOUR)
    assert read.visibility == timedelta(seconds=120)
    assert {place: value.total_seconds() for place, value in read.visibility_places.items()} == {
        COUNTS: 120,
        "result_backend_transport_options": 60,
        "visibility_timeout": 30,
    }
    assert read.tasks == (
        TaskNumbers(
            name="one",
            lease=45 * SECOND,
            longest_run=30 * SECOND,
            keep=timedelta(days=9),
            acks_late=True,
            reject_on_worker_lost=False,
            time_limit=50 * SECOND,
            soft_time_limit=40 * SECOND,
            waits_for_database=False,
            retry_delay=600 * SECOND,
        ),
    )
    once.close()
    app.close()


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({}, False),
        ({"autoretry_for": (OSError,)}, False),
        ({"autoretry_for": (semel.errors.DatabaseUnreachable,)}, True),
        ({"autoretry_for": (OSError, Exception)}, True),
        ({"autoretry_for": (Exception,), "dont_autoretry_for": (semel.errors.SemelError,)}, False),
    ],
)
@pytest.mark.parametrize("by", ["decorator", "base class"])
def test_whether_a_task_waits_for_the_guards_database(
    tmp_path: Path, options: dict[str, Any], waits: bool, by: str
) -> None:
    app = Celery(broker="redis://127.0.0.1:1/0", set_as_current=False)
    once = semel.Once(str(tmp_path / "semel.db"))
    guarding = once.operation("one", key="n")

    def one(op: semel.Operation, n: int) -> None: ...

    if by == "decorator":
        app.task(shared=False, **options)(guard(guarding)(one))
    else:
        app.task(shared=False, base=GuardedTask, once=guarding, **options)(one)
    (task,) = read_celery(app).tasks
    assert task.waits_for_database is waits
    once.close()
    app.close()


SHOP = """
import semel
from celery import Celery
from semel.adapters.celery import guard

app = Celery("shop", broker="redis://127.0.0.1:1/0", include=["shop_tasks"])
app.conf.worker_prefetch_multiplier = 1
number = 7
"""
TASKS = """
import semel
from semel.adapters.celery import guard
from shop import app

once = semel.Once("semel.db")

@app.task(acks_late=LATE, reject_on_worker_lost=True, time_limit=50, soft_time_limit=40, autoretry_for=(Exception,))
@guard(once.operation("charge", key="order"))
def charge(op: semel.Operation, order: int) -> None: ...
"""


def doctor(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "semel", "doctor", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command(tmp_path: Path) -> None:
    """It imports what workers import, asks no broker, and its exit code says whether something is to be mended."""
    (tmp_path / "shop.py").write_text(SHOP)
    tasks = TASKS.replace("LATE", "True")
    (tmp_path / "shop_tasks.py").write_text(tasks)
    fine = doctor(tmp_path, "--celery", "shop:app")
    assert fine.returncode == 0, fine.stderr
    assert "To mend: 0" in fine.stdout
    far = doctor(tmp_path, "--eta-horizon", "8 h", "--json", SEMEL_CELERY_APP="shop:app")
    assert far.returncode == 1
    (found,) = [each for each in json.loads(far.stdout)["findings"] if each["severity"] == "warning"]
    assert found["code"] == "celery-visibility-eta"
    assert found["subject"] == "shop_tasks.charge"
    assert set(found) == {"code", "severity", "subject", "figure", "happened", "mend"}
    (tmp_path / "shop_tasks.py").write_text(
        tasks.replace(
            'key="order"', 'key="order", effect=semel.ProviderKey(valid_for="1 min", then=semel.Hold())'
        )
    )
    forgets = doctor(tmp_path, "--celery", "shop:app", "--json")
    assert {"celery-provider-window", "app-provider-window"} <= {
        each["code"] for each in json.loads(forgets.stdout)["findings"]
    }
    (tmp_path / "shop_tasks.py").write_text(TASKS.replace("LATE", "False"))
    early = doctor(tmp_path, "--celery", "shop:app")
    assert early.returncode == 1
    assert "[celery-early-ack]" in early.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "There is nothing to look at."),
        (("--celery", "shop:number"), "is a int, not a celery.Celery"),
        (("--celery", "nowhere:app"), "There is no module nowhere"),
        (("--celery", "shop:app", "--eta-horizon", "soon"), "not a duration"),
    ],
)
def test_wrong_usage(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "shop_tasks.py").write_text(TASKS.replace("LATE", "True"))
    told = doctor(tmp_path, *words)
    assert told.returncode == 2
    assert said in told.stderr
