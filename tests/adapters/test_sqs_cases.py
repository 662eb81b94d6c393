"""Public cases about SQS and Lambda, by their numbers (docs/adr/0006), on a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters import job
from tests.adapters.sqs_fixtures import *  # noqa: F403
from tests.adapters.sqs_fixtures import make_charge, state_of
from tests.adapters.sqs_local import Effects, EventSource, Noting, Queue, consuming
from tests.adapters.sqs_rig import SqsRig, expire_mid_run, make_rig, server_of
from tests.adapters.sqs_servers import SqsServer
from tests.guard.stored import TIMES
from tests.support.waiting import until

import semel
from semel.adapters.sqs import Consumer, Inbox, lambda_handler
from semel.errors import StaleMessage

SAME = (
    '{"name":"c20","amount":2}',
    '{ "amount": 2.00, "name": "c20" }',
    '{"amount":"2","name":"\\u00632\\u0030"}',
)


@pytest.fixture
def rig(
    make_database: Callable[[str], Any], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[SqsRig]:
    with make_rig(server_of("ministack", request), make_database("postgresql"), tmp_path, rounds=1) as made:
        yield made


def make_consumer(queue: Queue, handler: Any, **options: Any) -> Consumer:
    return Consumer(queue.url, handler, **{"client": queue.client, "wait": 1, **options})


def test_c12_messages_that_age_in_a_buffer_are_received_by_others(
    server: SqsServer, charge: Any, effects: Effects, once: semel.Once
) -> None:
    """The control: ten taken at once, handled one after another; the last is visible again before it starts."""
    queue = Queue.on(server, VisibilityTimeout=1)
    for number in range(10):
        queue.send({"name": f"aged-{number}"})
    first = queue.receive(visibility=1)
    assert len(first) == 10
    second: list[Any] = []
    until(lambda: second.extend(queue.receive(visibility=60)) or len(second) == 10, "all come again")
    plain = Effects()
    for raw in (*first, *second):
        plain.act(json.loads(raw["Body"])["name"])
    assert set(plain.counts.values()) == {2}, "without a guard both act"

    inbox = Inbox(queue.url, client=queue.client)
    handle = inbox.handler(charge)
    endings = [handle(raw).why for raw in first]
    assert endings == ["it was visible again before it was handled"] * 10
    with pytest.raises(StaleMessage), inbox.delivery(first[0]):
        effects.act("never")
    for raw in second:
        handle(raw)
    assert effects.counts == dict.fromkeys((f"aged-{number}" for number in range(10)), 1)
    queue.wait_empty()


def test_c12_a_consumer_takes_no_more_than_it_starts(
    server: SqsServer, charge: Any, effects: Effects
) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    gates = [effects.hold(f"prefetch-{number}") for number in range(4)]
    for number in range(4):
        queue.send({"name": f"prefetch-{number}"})
    client = Noting(queue.client)
    with consuming(make_consumer(queue, charge, client=client, concurrency=1)):
        for done, _ in enumerate(gates):
            until(lambda: len(effects.begun) == done + 1, "one more runs")  # noqa: B023
            extended = len(client.hidden_for())
            until(lambda: len(client.hidden_for()) >= extended + 4, "longer than a visibility")  # noqa: B023
            effects.hold(effects.begun[-1]).set()
        queue.wait_empty()
    assert len(effects.begun) == 4, "each delivered once"


def test_c14_one_bad_record_in_a_batch_of_ten(server: SqsServer, once: semel.Once) -> None:
    """Three rounds: without the guard nine orders are made again; with it none, and the bad one goes to the dead letters."""
    bad = "order-7"

    def run(handler: Callable[[Effects], Callable[..., Any]]) -> tuple[Effects, Queue]:
        queue = Queue.on(server, dead_letters_after=3, VisibilityTimeout=1)
        effects = Effects()
        effects.fail(bad, 100)
        for number in range(1, 11):
            queue.send({"name": f"order-{number}"})
        source, function = EventSource(queue), handler(effects)
        while queue.counts() != (0, 0):
            source.poll(function, visibility=1)
        return effects, queue

    def all_or_nothing(effects: Effects) -> Callable[..., Any]:
        def handle(event: dict[str, Any], _: Any) -> dict[str, Any]:
            for record in event["Records"]:
                name = json.loads(record["body"])["name"]
                effects.begin(name)
                effects.act(name)
            return {"batchItemFailures": []}

        return handle

    before, _ = run(all_or_nothing)
    assert max(before.counts.values()) >= 2, "orders are made again"
    effects, queue = run(lambda effects: lambda_handler(make_charge(once, effects)))
    assert effects.counts == dict.fromkeys((f"order-{n}" for n in range(1, 11) if n != 7), 1)
    assert effects.begun.count(bad) == 3
    assert queue.letters is not None
    assert [json.loads(each["Body"])["name"] for each in queue.letters.receive()] == [bad]


def test_c14_one_bad_message_among_ten_of_a_consumer(
    server: SqsServer, charge: Any, effects: Effects
) -> None:
    queue = Queue.on(server, dead_letters_after=3, VisibilityTimeout=1)
    effects.fail("bad", 100)
    for number in range(9):
        queue.send({"name": f"good-{number}"})
    queue.send({"name": "bad"})
    with consuming(make_consumer(queue, charge)):
        queue.wait_empty()
    assert effects.counts == dict.fromkeys((f"good-{number}" for number in range(9)), 1)
    assert effects.begun.count("bad") == 3


def test_c15_fifo_deduplicates_sends_and_no_deliveries(
    server: SqsServer, charge: Any, effects: Effects
) -> None:
    """The same body under another deduplication id, as after its five minutes; and a redelivery of the first."""
    queue = Queue.on(server, fifo=True)
    source = EventSource(queue)
    plain = Effects()

    def unguarded(event: dict[str, Any], _: Any) -> dict[str, Any]:
        for record in event["Records"]:
            plain.act(json.loads(record["body"])["name"])
        return {"batchItemFailures": []}

    queue.send({"name": "fifo"}, group="g")
    messages = queue.receive(visibility=1, wait=1)
    unguarded(source.event(messages), None)
    lambda_handler(charge)(source.event(messages), None)  # and the function dies before Lambda deletes them
    again: list[Any] = []
    until(lambda: again.extend(queue.receive(visibility=30)) or again, "the first comes again")
    unguarded(source.event(again), None)
    assert plain.counts["fifo"] == 2, "FIFO alone acts again"
    assert lambda_handler(charge)(source.event(again), None) == {"batchItemFailures": []}
    queue.client.delete_message(QueueUrl=queue.url, ReceiptHandle=again[0]["ReceiptHandle"])
    queue.send({"name": "fifo"}, group="g")
    queue.send({"name": "fifo 2"}, group="g")
    while queue.counts() != (0, 0):
        assert source.poll(lambda_handler(charge)) == []
    assert effects.counts == {"fifo": 1, "fifo 2": 1}, "one operation once, another one too"


def call_function(rig: SqsRig, how: str, event: dict[str, Any], lease: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.sqs_function", how],
        env={
            **os.environ,
            **rig.server.environment,
            "SEMEL_DATABASE_URL": rig.database,
            job.PORT: str(rig.stage.port),
            job.LEASE: str(lease),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(event))
    process.stdin.close()
    return process


def answer_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    told = json.loads(process.stdout.read())
    assert process.wait(60) == 0
    return [each["itemIdentifier"] for each in told["batchItemFailures"]]


@pytest.mark.parametrize(("how", "state"), [("lookup", "completed found"), ("hold", "held")])
def test_c16_c17_a_function_that_ran_out_of_time_with_the_effect_done(
    rig: SqsRig, how: str, state: str
) -> None:
    """The retry while its claim is young is in progress, and does not act; after the lease the policy decides."""
    name = f"timed-out-{how}"
    message = rig.send(name, how=how)
    queue = Queue(rig.server, rig.url, rig.client)
    source = EventSource(queue)
    (first,) = queue.receive(visibility=1, wait=5)
    rig.stage.hold(name, "effect")
    function = call_function(rig, how, source.event([first]), 60)
    rig.stage.wait_for(name, "effect")
    function.kill()
    function.wait(20)
    again: list[Any] = []
    until(lambda: again.extend(queue.receive(visibility=30)) or again, "it is delivered again")
    assert answer_of(call_function(rig, how, source.event(again), 60)) == [again[0]["MessageId"]]
    assert rig.state(name) == "claimed"
    rig.age(name)
    assert answer_of(call_function(rig, how, source.event(again), 60)) == []
    assert rig.state(name) == state
    assert rig.stage.effects[name] == 1
    assert message["MessageBody"]


def without_times(record: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (record or {}).items() if name not in TIMES}


def test_c19_a_refused_delivery_leaves_the_owners_claim(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path
) -> None:
    queue = Queue.on(server)
    client = Noting(queue.client)
    gate = effects.hold("owned")
    with consuming(make_consumer(queue, make_charge(once, effects, lease="60 s"), client=client)):
        queue.send({"name": "owned"})
        until(lambda: effects.begun, "A runs")
        before = without_times(state_of(path, "owned"))
        for _ in "BC":
            put_off = len(client.hidden_for())
            queue.send({"name": "owned"})
            until(lambda: len(client.hidden_for()) > put_off, "refused, and put off")  # noqa: B023
        assert without_times(state_of(path, "owned")) == before, "not a column has changed"
        assert before["token"] is not None
        gate.set()
        until(lambda: queue.counts() == (0, 2), "A's message is deleted, the others wait")
    after = state_of(path, "owned")
    assert after is not None
    assert (after["state"], after["claim"]) == ("completed", 1)
    assert effects.begun == ["owned"]


def test_c20_the_text_of_a_body_makes_no_key(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server, dead_letters_after=3)
    assert queue.letters is not None
    with consuming(make_consumer(queue, charge)):
        for text in (
            '{"name":"c20","amount":2}',
            '{ "amount": 2.00, "name": "c20" }',
            '{"amount":"2","name":"\\u00632\\u0030"}',
        ):
            queue.send(text)
            queue.wait_empty()
    assert effects.happened == ["c20"]
    assert queue.letters.receive() == []


def test_c21_an_exception_after_the_effect(server: SqsServer, once: semel.Once, path: Path) -> None:
    """In the same database the effect is rolled back with the claim, and the retry is right."""
    queue = Queue.on(server, VisibilityTimeout=1)
    faults = iter([ValueError("after the effect")])

    @once.operation("count", key="name", effect=semel.Row())
    def count(op: semel.Operation, name: str) -> None:
        op.connection.execute("CREATE TABLE IF NOT EXISTS counted (name text)")
        op.connection.execute("INSERT INTO counted VALUES (?)", (name,))
        for fault in faults:
            raise fault

    with consuming(make_consumer(queue, count)):
        queue.send({"name": "c21"})
        queue.wait_empty()

    @once.operation("look", key="name", effect=semel.Row())
    def look(op: semel.Operation, name: str) -> int:
        return int(
            op.connection.execute("SELECT count(*) FROM counted WHERE name = ?", (name,)).fetchone()[0]
        )

    assert look("c21") == 1


def test_f45_a_visibility_that_ends_mid_run_and_a_delete_with_a_stale_receipt(rig: SqsRig) -> None:
    expire_mid_run(rig, 10)
