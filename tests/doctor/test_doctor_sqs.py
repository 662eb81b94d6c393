"""What is found of SQS queues: the numbers against each other, read from a real queue, and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.sqs_fixtures import *  # noqa: F403
from tests.adapters.sqs_local import Queue
from tests.adapters.sqs_servers import SqsServer
from tests.docs.pages import ROOT

import semel
from semel.adapters.sqs import Consumer, QueueSettings
from semel.doctor.finding import Severity
from semel.doctor.sqs import Consuming, JobNumbers, check_event_source, check_queue, needed_receives

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
LETTERS = QueueSettings(name="orders-dead", retention=14 * DAY)
QUEUE = QueueSettings(
    name="orders",
    visibility=30 * SECOND,
    max_receives=10,
    dead_letter_queue="arn:aws:sqs:eu-central-1:1:orders-dead",
)
JOB = JobNumbers(name="charge", lease=MINUTE, longest_run=MINUTE)
GUARDED = Consuming(jobs=[JOB], batch=1)
FIFO = replace(QUEUE, name="orders.fifo", fifo=True)


def job(**changed: Any) -> Consuming:
    return replace(GUARDED, jobs=[replace(JOB, **changed)])


FOUND: dict[str, tuple[str, Severity, tuple[Any, ...], tuple[Any, ...]]] = {
    "no dead letters": (
        "sqs-no-dead-letters",
        Severity.WARNING,
        (replace(QUEUE, max_receives=None, dead_letter_queue=None), GUARDED),
        (QUEUE, GUARDED),
    ),
    "receives used up by a lease": (
        "sqs-max-receives",
        Severity.ERROR,
        (replace(QUEUE, max_receives=6), GUARDED),
        (replace(QUEUE, max_receives=7), GUARDED),
    ),
    "receives used up by a shorter visibility of the consumer": (
        "sqs-max-receives",
        Severity.ERROR,
        (QUEUE, replace(GUARDED, visibility=10 * SECOND)),
        (QUEUE, replace(GUARDED, visibility=20 * SECOND)),
    ),
    "messages that are not kept": (
        "sqs-message-not-kept",
        Severity.WARNING,
        (QUEUE, job(keeps_message=False)),
        (QUEUE, GUARDED),
    ),
    "a run over twelve hours": (
        "sqs-longest-run",
        Severity.ERROR,
        (QUEUE, job(longest_run=13 * HOUR)),
        (QUEUE, job(longest_run=12 * HOUR)),
    ),
    "C12: messages age in a loop that does not extend": (
        "sqs-visibility-short",
        Severity.WARNING,
        (QUEUE, replace(GUARDED, jobs=[replace(JOB, longest_run=4 * SECOND)], extends=False, batch=10)),
        (QUEUE, replace(GUARDED, jobs=[replace(JOB, longest_run=3 * SECOND)], extends=False, batch=10)),
    ),
    "a visibility that no stall survives": (
        "sqs-visibility-short",
        Severity.WARNING,
        (replace(QUEUE, visibility=5 * SECOND, max_receives=100), GUARDED),
        (replace(QUEUE, visibility=10 * SECOND, max_receives=100), GUARDED),
    ),
    "C36: a visibility that hides a dead worker's work": (
        "sqs-visibility-long",
        Severity.WARNING,
        (replace(QUEUE, visibility=HOUR), GUARDED),
        (replace(QUEUE, visibility=15 * MINUTE), GUARDED),
    ),
    "C27: records that go before the messages": (
        "sqs-records-too-short",
        Severity.ERROR,
        (QUEUE, job(keep=17 * DAY), LETTERS),
        (QUEUE, job(keep=18 * DAY), LETTERS),
    ),
    "a retention within a lease": (
        "sqs-retention-short",
        Severity.ERROR,
        (replace(QUEUE, retention=2 * MINUTE), GUARDED),
        (replace(QUEUE, retention=3 * MINUTE), GUARDED),
    ),
    "dead letters that are deleted with the queue's": (
        "sqs-dead-letter-retention",
        Severity.WARNING,
        (QUEUE, GUARDED, replace(LETTERS, retention=4 * DAY)),
        (QUEUE, GUARDED, LETTERS),
    ),
    "the provider forgets the key before the last receive": (
        "sqs-provider-window",
        Severity.WARNING,
        (QUEUE, job(valid_for=16 * MINUTE)),  # ten times 30 s and a run of 1 min, and a run
        (QUEUE, job(valid_for=16 * MINUTE + SECOND)),
    ),
    "the provider forgets the key before the last receive by a loop that does not extend": (
        "sqs-provider-window",
        Severity.WARNING,
        (QUEUE, replace(job(valid_for=6 * MINUTE), extends=False)),
        (QUEUE, replace(job(valid_for=6 * MINUTE + SECOND), extends=False)),
    ),
    "the provider forgets the key, and nothing ends the receives": (
        "sqs-provider-window",
        Severity.WARNING,
        (replace(QUEUE, max_receives=None), job(valid_for=4 * DAY)),
        (replace(QUEUE, max_receives=None), job(valid_for=5 * DAY)),
    ),
    "the provider forgets the key before the retention ends what is received without an end": (
        "sqs-provider-window",
        Severity.WARNING,
        (replace(QUEUE, max_receives=1000, retention=HOUR), job(valid_for=HOUR)),
        (replace(QUEUE, max_receives=1000, retention=HOUR), job(valid_for=2 * HOUR)),
    ),
    "the provider forgets the key of what waited": (
        "sqs-provider-retention",
        Severity.NOTE,
        (QUEUE, job(valid_for=DAY), LETTERS),
        (QUEUE, job(valid_for=19 * DAY), LETTERS),
    ),
    "C15: FIFO for a guard": (
        "sqs-fifo-no-guard",
        Severity.ERROR,
        (FIFO, replace(GUARDED, unguarded=["ship"])),
        (FIFO, GUARDED),
    ),
    "C15: equal bodies of two operations": (
        "sqs-content-deduplication",
        Severity.WARNING,
        (replace(FIFO, deduplicates_by_content=True), GUARDED),
        (FIFO, GUARDED),
    ),
    "what waits behind a failing one": (
        "sqs-fifo-batch",
        Severity.NOTE,
        (FIFO, replace(GUARDED, batch=2)),
        (FIFO, GUARDED),
    ),
    "a visibility within the function's time": (
        "sqs-lambda-visibility",
        Severity.WARNING,
        (replace(QUEUE, visibility=5 * MINUTE), replace(GUARDED, function_time_out=MINUTE)),
        (replace(QUEUE, visibility=6 * MINUTE), replace(GUARDED, function_time_out=MINUTE)),
    ),
    "a function that ends before the run": (
        "sqs-lambda-time-out",
        Severity.ERROR,
        (replace(QUEUE, visibility=HOUR), replace(GUARDED, function_time_out=59 * SECOND)),
        (replace(QUEUE, visibility=HOUR), replace(GUARDED, function_time_out=MINUTE)),
    ),
}


@pytest.mark.parametrize("name", list(FOUND))
def test_each_is_found_where_it_is_and_nowhere_else(name: str) -> None:
    code, severity, bad, good = FOUND[name]
    (found,) = [each for each in check_queue(*bad) if each.code == code]
    assert found.severity is severity
    assert all((found.subject, found.figure, found.happened, found.mend))
    assert code not in [each.code for each in check_queue(*good)]


def test_what_fits_has_no_findings() -> None:
    assert check_queue(QUEUE, GUARDED, LETTERS) == []
    assert check_queue(FIFO, GUARDED) == []


def test_how_often_a_message_may_have_to_be_received() -> None:
    assert needed_receives(JOB, 30 * SECOND) == 2 + 2 + 3
    assert needed_receives(JOB, 40 * SECOND) == 2 + 2 + 3
    assert needed_receives(JOB, HOUR) == 2 + 1 + 3


def test_a_mapping_that_deletes_what_failed() -> None:
    arn = "arn:aws:sqs:eu-central-1:1:orders"
    (found,) = check_event_source({"EventSourceArn": arn, "FunctionResponseTypes": []})
    assert (found.code, found.severity, found.subject) == ("sqs-lambda-batch-failures", Severity.ERROR, arn)
    assert (
        check_event_source({"EventSourceArn": arn, "FunctionResponseTypes": ["ReportBatchItemFailures"]})
        == []
    )


def test_a_real_queue_is_read(server: SqsServer, once: semel.Once) -> None:
    @once.operation("charge", key="name", lease="2 min")
    def charge(op: semel.Operation, name: str) -> None: ...

    def ship(name: str) -> None: ...

    queue = Queue.on(
        server, fifo=True, dead_letters_after=3, VisibilityTimeout=20, MessageRetentionPeriod=3600
    )
    consumer = Consumer(
        queue.url, {"charge": charge, "ship": ship}, kind="kind", client=queue.client, batch=5
    )
    settings = consumer.queue.settings
    assert (settings.visibility, settings.retention, settings.fifo) == (20 * SECOND, HOUR, True)
    assert settings.max_receives == 3
    letters = consumer.queue.dead_letters()
    assert letters is not None
    consuming = Consuming.of(consumer)
    assert [each.lease for each in consuming.jobs] == [2 * MINUTE]
    assert len(consuming.unguarded) == 1
    found = {each.code: each for each in check_queue(settings, consuming, letters.settings)}
    assert set(found) == {"sqs-max-receives", "sqs-fifo-no-guard", "sqs-fifo-batch"}
    assert "3 < 11" in found["sqs-max-receives"].figure


def test_a_providers_window_is_held_against_a_real_queue(server: SqsServer, once: semel.Once) -> None:
    def charge(op: semel.Operation, name: str) -> None: ...

    queue = Queue.on(server, dead_letters_after=100, VisibilityTimeout=900, MessageRetentionPeriod=345_600)

    def found(window: str) -> dict[str, str]:
        effect = semel.ProviderKey(valid_for=window, then=semel.Hold())
        guarded = once.operation("charge", key="name", longest_run="5 min", lease="10 min", effect=effect)(
            charge
        )
        consumer = Consumer(queue.url, guarded, client=queue.client)
        letters = consumer.queue.dead_letters()
        assert letters is not None
        findings = check_queue(consumer.queue.settings, Consuming.of(consumer), letters.settings)
        return {each.code: each.figure for each in findings if each.code.startswith("sqs-provider")}

    assert found("24 h") == {
        "sqs-provider-window": "valid_for 1 day, delivered again for up to 1 day 9 h 20 min (maxReceiveCount 100 x "
        "visibility 15 min and extended 5 min), longest run 5 min"
    }
    assert list(found("48 h")) == ["sqs-provider-retention"]
    assert found("30 days") == {}


def test_the_command(server: SqsServer, tmp_path: Path) -> None:
    queue = Queue.on(server)
    (tmp_path / "shop.py").write_text(
        "import os, semel\nfrom semel.adapters.sqs import Consumer\n"
        "once = semel.Once('shop.db')\n"
        "@once.operation('charge', key='name')\ndef charge(op, name: str): ...\n"
        "consumer = Consumer(os.environ['QUEUE'], charge)\n",
        "utf-8",
    )

    def semel_(*words: str, url: str = queue.url) -> tuple[int, str, str]:
        environment = {**os.environ, **server.environment, "QUEUE": url}
        command = [sys.executable, "-m", "semel", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
        )
        return done.returncode, done.stdout, done.stderr

    code, out, _ = semel_("doctor", "--sqs", "shop:consumer", "--json")
    assert code == 1
    assert [each["code"] for each in json.loads(out)["findings"]] == [
        "sqs-no-dead-letters",
        "app-from-start",
    ]
    code, _, err = semel_("doctor", "--sqs", "shop:consumer", url="no-such-queue")
    assert code == 3
    assert "no-such-queue" in err
    code, _, err = semel_("sqs", "worker", "shop:consumer", url="no-such-queue")
    assert code == 3
    code, _, err = semel_("sqs", "worker", "shop:charge")
    assert code == 2
    assert "not a semel.adapters.sqs.Consumer" in err


def test_every_code_has_its_line() -> None:
    text = (ROOT / "docs" / "sqs.md").read_text("utf-8")
    codes = {code for code, *_ in FOUND.values()} | {"sqs-lambda-batch-failures"}
    assert {code for code in codes if f"`{code}`" not in text} == set()
    source = (ROOT / "src/semel/doctor/sqs.py").read_text("utf-8")
    assert {word for word in source.split('"') if word.startswith("sqs-")} == codes
