"""What the consumer does with messages, on ministack: order, deletion, visibility, what never succeeds, and stopping."""

from __future__ import annotations

import json
import threading
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.sqs_fixtures import *  # noqa: F403
from tests.adapters.sqs_fixtures import make_charge, state_of
from tests.adapters.sqs_local import Effects, Noting, Queue, consuming
from tests.adapters.sqs_servers import SqsServer
from tests.guard.stored import Stored
from tests.support.waiting import until

import semel
from semel.adapters.sqs import Consumer
from semel.core.keys import compute_key
from semel.errors import BrokerUnreachable, ConfigurationError


def make_consumer(queue: Queue, handler: Any, **options: Any) -> Consumer:
    client = options.pop("client", queue.client)
    return Consumer(queue.url, handler, client=client, **{"wait": 1, **options})


def test_a_message_is_hidden_as_long_as_its_function_runs(
    server: SqsServer, charge: Any, effects: Effects
) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    client = Noting(queue.client)
    gate = effects.hold("long")
    with consuming(make_consumer(queue, charge, client=client)):
        queue.send({"name": "long"})
        until(lambda: effects.begun, "it runs")
        ends = time.monotonic() + 3
        while time.monotonic() < ends:  # three times its visibility
            assert queue.receive(wait=1) == [], "nobody else gets it"
        gate.set()
        queue.wait_empty()
    assert effects.begun == ["long"]
    assert set(client.hidden_for()) == {1}


def test_a_message_is_deleted_after_its_record_is_completed_and_in_batches(
    server: SqsServer, charge: Any, effects: Effects, path: Path
) -> None:
    queue = Queue.on(server)
    client = Noting(queue.client)
    seen: list[str] = []
    names: dict[str, str] = {}

    def look(request: dict[str, Any]) -> None:
        for name in list(names.values()):
            if name in effects.happened and name not in seen:
                seen.append(name)
        done = [state_of(path, name) for name in seen]
        assert len(request["Entries"]) <= sum(
            each is not None and each["state"] == "completed" for each in done
        )

    client.before["delete_message_batch"] = look
    for number in range(40):
        names[queue.send({"name": f"batch-{number}"})] = f"batch-{number}"
    with consuming(make_consumer(queue, charge, client=client)):
        queue.wait_empty()
    deletes = client.named("delete_message_batch")
    assert sum(len(each["Entries"]) for each in deletes) == 40
    assert all(len(each["Entries"]) <= 10 for each in deletes)
    assert len(deletes) < 40
    assert effects.counts == dict.fromkeys(names.values(), 1)


def test_no_more_is_received_than_can_start(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server)
    gates = [effects.hold(f"slow-{number}") for number in range(5)]
    for number in range(5):
        queue.send({"name": f"slow-{number}"})
    with consuming(make_consumer(queue, charge, concurrency=2)):
        until(lambda: len(effects.begun) == 2, "two run")
        time.sleep(1.2)  # a long poll's time: nothing else may be taken
        assert queue.counts() == (3, 2)
        for gate in gates:
            gate.set()
        queue.wait_empty()
    assert len(effects.happened) == 5


def test_deletes_that_fail_are_tried_again(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    client = Noting(queue.client)
    failures = iter([OSError("no network")] * 2)

    def fail(_: Any) -> None:
        for failure in failures:
            raise failure

    client.before["delete_message_batch"] = fail
    with consuming(make_consumer(queue, charge, client=client)):
        queue.send({"name": "undeleted"})
        queue.wait_empty()
    assert effects.begun == ["undeleted"], "hidden until it is deleted, so it never came again"
    assert len(client.named("delete_message_batch")) == 1


def test_receives_that_fail_cost_time_only(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server)
    client = Noting(queue.client)
    failures = iter([OSError("no network")])

    def fail(_: Any) -> None:
        for failure in failures:
            raise failure

    client.before["receive_message"] = fail
    queue.send({"name": "late"})
    with consuming(make_consumer(queue, charge, client=client)):
        queue.wait_empty()
    assert effects.happened == ["late"]


def test_in_progress_hides_for_the_rest_of_the_lease(
    server: SqsServer, once: semel.Once, effects: Effects
) -> None:
    queue = Queue.on(server, VisibilityTimeout=30)
    client = Noting(queue.client)
    gate = effects.hold("twice")
    charge = make_charge(once, effects, lease="90 s")
    with consuming(make_consumer(queue, charge, client=client)):
        queue.send({"name": "twice"})
        until(lambda: effects.begun, "the first runs")
        queue.send({"name": "twice"})
        until(client.hidden_for, "the second is put off")
        gate.set()
        until(lambda: queue.counts() == (0, 1), "the first is deleted, the second waits")
    (seconds,) = client.hidden_for()
    assert 85 <= seconds <= 100, "what is left of 90 s, and up to a tenth"
    assert effects.happened == ["twice"]


def test_an_extension_that_is_refused_means_no_new_act(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path
) -> None:
    """Another gets the message before the point of no return: this attempt is refused it, and the other one acts."""
    queue = Queue.on(server, VisibilityTimeout=2)
    gate = effects.hold("lost")
    client = Noting(queue.client)
    lost = threading.Event()

    @once.operation("charge", key="name", acting="explicit", lease="60 s")
    def charge(op: semel.Operation, name: str) -> None:
        effects.begin(name)
        assert op.beside is not None
        beside = op.beside
        until(lambda: beside.lost() is not None, "the message is lost")
        lost.set()
        with op.acting():
            effects.act(name)

    with consuming(make_consumer(queue, charge, client=client, concurrency=1)):
        queue.send({"name": "lost"})
        until(lambda: effects.begun, "the first runs")
        taken = take(queue, client)
        gate.set()
        assert lost.wait(30)
        until(lambda: (state_of(path, "lost") or {})["state"] == "released", "the claim is given back")
    assert effects.happened == []
    make_charge(once, effects, payload=(), lease="60 s")(**json.loads(taken["Body"]))
    assert effects.happened == ["lost"]


def test_a_claim_is_extended_together_with_its_message_and_no_longer(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path
) -> None:
    """Both are kept while the function runs; when others have the message, the lease ends, and they have the claim too."""
    queue = Queue.on(server, VisibilityTimeout=2)
    client = Noting(queue.client)
    acted, ended = threading.Event(), threading.Event()

    @once.operation(
        "charge", key="name", payload=(), acting="explicit", lease="3 s", longest_run="2 min", extend=True
    )
    def charge(op: semel.Operation, name: str) -> None:
        effects.begin(name)
        assert acted.wait(60)
        try:
            with op.acting():
                effects.act("by the one that lost it")
        finally:
            ended.set()

    rival = make_charge(once, effects, payload=(), lease="60 s")

    def takes_over() -> bool:
        try:
            rival("together")
        except semel.InProgress:
            return False
        return True

    with consuming(make_consumer(queue, charge, client=client, concurrency=1)):
        queue.send({"name": "together"})
        until(lambda: (state_of(path, "together") or {}).get("revision", 0) >= 3, "the claim is extended")
        assert not takes_over()
        take(queue, client)
        until(takes_over, "nobody extends the claim any more", 30)
        acted.set()
        assert ended.wait(30)
    assert effects.happened == ["together"]


def test_a_message_is_extended_no_longer_than_its_claim(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path
) -> None:
    """Its function goes on and on: others get the message as soon as the claim is known to be lost."""
    queue = Queue.on(server, VisibilityTimeout=1)
    gate = effects.hold("outlived")

    @once.operation(
        "charge", key="name", payload=(), acting="explicit", lease="3 s", longest_run="2 min", extend=True
    )
    def charge(op: semel.Operation, name: str) -> None:
        effects.begin(name)
        with op.acting():
            effects.act(name)

    with consuming(make_consumer(queue, charge, concurrency=1)):
        queue.send({"name": "outlived"})
        until(lambda: effects.begun, "it runs")
        stored = Stored.at("sqlite", path)
        stored.change(compute_key("outlived").digest, token="f" * 32)
        stored.close()
        until(lambda: queue.receive(visibility=60), "others get its message", 30)
        gate.set()
    assert effects.happened == []


def take(queue: Queue, client: Noting) -> dict[str, Any]:
    """Receive what a consumer has in hand, as others do when its time-out ends."""
    until(lambda: client.named("change_message_visibility_batch"), "its receipt is known")
    taken: list[dict[str, Any]] = []

    def has_it() -> bool:
        """Unless it is extended just now, then once more."""
        known = client.named("change_message_visibility_batch")[-1]["Entries"][0]["ReceiptHandle"]
        queue.client.change_message_visibility(QueueUrl=queue.url, ReceiptHandle=known, VisibilityTimeout=0)
        taken.extend(queue.receive(visibility=60))
        return bool(taken)

    until(has_it, "another has it")
    return taken[0]


def test_a_claim_that_is_lost_lets_its_message_go(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue.on(server, VisibilityTimeout=2)

    @once.operation("charge", key="name", acting="explicit", lease="60 s", effect=semel.AcceptDuplicate())
    def charge(op: semel.Operation, name: str) -> None:
        effects.begin(name)
        stored = Stored.at("sqlite", path)
        stored.change(compute_key(name).digest, token="f" * 32)
        stored.close()
        with op.acting():
            effects.act(name)

    with consuming(make_consumer(queue, charge)):
        queue.send({"name": "taken"})
        until(lambda: "is claimed" in caplog.text, "it comes again, and asks the record")
    assert "leave: This attempt at charge no longer holds its claim" in caplog.text
    assert (effects.begun, effects.happened) == (["taken"], [])


@pytest.mark.parametrize(
    "body",
    ["no json", "[1, 2]", "3", '{"nmae": "x"}', '{"name": 1}', '{"name": "x", "extra": 1}', '{"name": ""}'],
)
def test_what_nobody_can_read_goes_to_the_dead_letters(
    server: SqsServer, charge: Any, effects: Effects, body: str
) -> None:
    queue = Queue.on(server, dead_letters_after=5)
    assert queue.letters is not None
    queue.send(body, origin="shop")
    queue.send({"name": f"beside {body}"})
    with consuming(make_consumer(queue, charge)):
        queue.wait_empty()
    (letter,) = queue.letters.receive()
    assert letter["Body"] == body
    assert letter["MessageAttributes"]["origin"]["StringValue"] == "shop"
    assert letter["MessageAttributes"]["semel-refused"]["StringValue"]
    assert effects.happened == [f"beside {body}"]


def test_the_largest_message_still_goes_to_the_dead_letters(server: SqsServer, charge: Any) -> None:
    """The reason beside it would make it larger than SQS takes, at each try."""
    queue = Queue.on(server, dead_letters_after=5)
    client = Noting(queue.client)
    most = 262_144

    def refuse(request: dict[str, Any]) -> None:
        named = request.get("MessageAttributes", {}).items()
        size = len(request["MessageBody"]) + sum(
            len(name) + len(each["DataType"]) + len(each["StringValue"]) for name, each in named
        )
        if size > most:
            raise OSError("as AWS documents it: the message must be shorter than 262144 bytes")

    client.before["send_message"] = refuse
    with consuming(make_consumer(queue, charge, client=client)):
        queue.send("x" * most)
        assert queue.letters is not None
        until(lambda: sum(queue.letters.counts()) == 1, "it is among the dead letters")
        queue.wait_empty()


def test_without_dead_letters_it_is_left_and_said(
    server: SqsServer, charge: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    message = queue.send("no json")
    with consuming(make_consumer(queue, charge)):
        until(lambda: caplog.text.count(f"{message}: left in the queue") >= 2, "it comes again, and is said")
    assert sum(queue.counts()) == 1


def test_what_never_succeeds_is_refused_once(
    server: SqsServer, once: semel.Once, effects: Effects, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue.on(server, dead_letters_after=5)
    assert queue.letters is not None
    with consuming(make_consumer(queue, make_charge(once, effects))):
        queue.send({"name": "refused", "amount": "1"})
        queue.wait_empty()
        queue.send({"name": "refused", "amount": "2"})
        queue.wait_empty()
    (letter,) = queue.letters.receive()
    assert "another payload" in letter["MessageAttributes"]["semel-refused"]["StringValue"]
    assert effects.happened == ["refused"]
    assert "payload_mismatch" in caplog.text or "mismatch" in caplog.text


def test_too_old_is_refused(server: SqsServer, once: semel.Once, effects: Effects) -> None:
    queue = Queue.on(server, dead_letters_after=5)
    assert queue.letters is not None

    @once.operation("report", key="day", dated="day", acting="explicit")
    def report(op: semel.Operation, day: date) -> None:
        with op.acting():
            effects.act(str(day))

    with consuming(make_consumer(queue, report)):
        queue.send({"day": "2020-01-01"})
        queue.wait_empty()
    (letter,) = queue.letters.receive()
    assert "older than records are kept" in letter["MessageAttributes"]["semel-refused"]["StringValue"]
    assert effects.happened == []


def test_a_message_that_keeps_failing_goes_to_the_dead_letters_by_sqs(
    server: SqsServer, charge: Any, effects: Effects
) -> None:
    queue = Queue.on(server, dead_letters_after=2, VisibilityTimeout=1)
    assert queue.letters is not None
    effects.fail("always", 100)
    queue.send({"name": "always"})
    with consuming(make_consumer(queue, charge)):
        queue.wait_empty()
    assert len(queue.letters.receive()) == 1
    assert effects.begun == ["always"] * 2


def test_backoff_hides_what_failed(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server, VisibilityTimeout=30)
    client = Noting(queue.client)
    effects.fail("again", 1)
    queue.send({"name": "again"})
    backoff = semel.Backoff(base=1, factor=1, jitter=0)
    with consuming(make_consumer(queue, charge, client=client, backoff=backoff)):
        queue.wait_empty()
    assert client.hidden_for() == [1]
    assert effects.happened == ["again"]


def test_held_is_deleted_only_where_its_message_is_kept(
    server: SqsServer, path: Path, effects: Effects
) -> None:
    for kept in (True, False):
        once = semel.Once(path, keep_messages=kept)
        queue = Queue.on(server, VisibilityTimeout=1)

        @once.operation("charge", key="name", acting="explicit", lease="60 s")
        def charge(op: semel.Operation, name: str) -> None:
            with op.acting():
                effects.act(name)
                raise RuntimeError("no answer")

        with consuming(make_consumer(queue, charge)):
            name = f"held kept={kept}"
            queue.send({"name": name})
            until(lambda: (state_of(path, name) or {}).get("state") == "held", "it is held")  # noqa: B023
            if kept:
                queue.wait_empty()
        if not kept:
            assert sum(queue.counts()) == 1
        assert effects.counts[name] == 1
        once.close()


def test_a_group_is_in_order_and_blocked_by_what_did_not_end(
    server: SqsServer, charge: Any, effects: Effects
) -> None:
    queue = Queue.on(server, fifo=True, VisibilityTimeout=1)
    effects.fail("a2", 2)
    for number in range(1, 6):
        queue.send({"name": f"a{number}"}, group="a")
        queue.send({"name": f"b{number}"}, group="b")
    with consuming(make_consumer(queue, charge, concurrency=10)):
        queue.wait_empty()
    of_a = [name for name in effects.begun if name.startswith("a")]
    assert of_a == ["a1", "a2", "a2", "a2", "a3", "a4", "a5"]
    assert [name for name in effects.happened if name.startswith("b")] == [f"b{n}" for n in range(1, 6)]


def test_a_stop_waits_for_what_runs_and_gives_back_what_did_not_start(
    server: SqsServer, charge: Any, effects: Effects, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "semel.sqs")
    queue = Queue.on(server, fifo=True, VisibilityTimeout=60)
    gate = effects.hold("g1")
    for number in range(1, 4):
        queue.send({"name": f"g{number}"}, group="g")
    consumer = make_consumer(queue, charge)
    with consuming(consumer) as thread:
        until(lambda: effects.begun == ["g1"], "the first runs")
        assert queue.counts()[1] >= 1
        consumer.stop()
        until(lambda: "stopping: what has started goes on" in caplog.text, "it knows that it is to stop")
        gate.set()
        thread.join(30)
        assert not thread.is_alive()
        assert queue.counts() == (2, 0), "visible at once, not after a minute"
    assert effects.happened == ["g1"]


def test_a_stop_that_is_hurried_leaves_what_runs(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    gate = effects.hold("stuck")
    queue.send({"name": "stuck"})
    consumer = make_consumer(queue, charge)
    left: list[int] = []
    thread = threading.Thread(target=lambda: left.append(consumer.run()), daemon=True)
    thread.start()
    until(lambda: effects.begun, "it runs")
    consumer.stop()
    consumer.stop()
    thread.join(30)
    assert left == [1]
    gate.set()


def test_functions_by_kind_and_plain_ones(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server, dead_letters_after=5)
    assert queue.letters is not None

    def plain(name: str) -> None:
        effects.act(f"plain {name}")

    with consuming(make_consumer(queue, {"charge": charge, "plain": plain}, kind="type")):
        queue.send({"name": "kinds"}, type="charge")
        queue.send({"name": "kinds"}, type="plain")
        queue.send({"name": "kinds"}, type="other")
        queue.send({"name": "kinds"})
        queue.wait_empty()
    assert sorted(effects.happened) == ["kinds", "plain kinds"]
    reasons = [each["MessageAttributes"]["semel-refused"]["StringValue"] for each in queue.letters.receive()]
    assert len(reasons) == 2
    assert all("No function is for messages of kind" in reason for reason in reasons)


def test_what_cannot_be_is_refused_where_it_is_said(server: SqsServer, charge: Any) -> None:
    async def later(name: str) -> None: ...

    url = "http://127.0.0.1:1/queue"
    for wrong in (
        {"handler": later},
        {"concurrency": 0},
        {"batch": 11},
        {"wait": 21},
        {"wait": "1.5 s"},
        {"visibility": "13 h"},
        {"visibility": 0},
        {"kind": "type"},
        {"handler": {"a": charge}},
        {"extra": "perhaps"},
    ):
        with pytest.raises(ConfigurationError):
            Consumer(url, **{"handler": charge, **wrong})
    with pytest.raises(BrokerUnreachable, match="no-such-queue"):
        Consumer("no-such-queue", charge, client=server.client()).run()


def test_names_of_queues_will_do(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server)
    queue.send({"name": "by name"})
    consumer = Consumer(queue.url.rpartition("/")[2], charge, client=queue.client, wait=1)
    with consuming(consumer):
        queue.wait_empty()
    assert effects.happened == ["by name"]
    assert consumer.visibility == timedelta(seconds=30)


def make_whole(once: semel.Once, effects: Effects, part: Any) -> Any:
    """An operation that asks for another one, before its own point of no return."""

    @once.operation("whole", key="name", payload=(), acting="explicit")
    def whole(op: semel.Operation, name: str) -> None:
        effects.begin(name)
        part(f"{name}-part")
        with op.acting():
            effects.act(name)

    return whole


FINAL: dict[str, dict[str, Any]] = {
    "held": {
        "state": "held",
        "outcome": None,
        "completed_at": None,
        "message": '{"adapter": "sqs", "queue": "q", "body": "", "attributes": {}, "group": null}',
    },
    "abandoned": {"outcome": "abandoned"},
}


@pytest.mark.parametrize("answer", FINAL)
@pytest.mark.parametrize("guarded", [True, False], ids=["in an operation", "in a plain function"])
def test_the_answer_of_an_operation_inside_ends_no_message(
    server: SqsServer,
    once: semel.Once,
    charge: Any,
    effects: Effects,
    path: Path,
    answer: str,
    guarded: bool,
) -> None:
    """It comes again, as after any exception, until a person has decided about the inner one."""
    name = f"{answer}-{guarded}"
    queue = Queue.on(server, VisibilityTimeout=1)
    charge(f"{name}-part")
    stored = Stored.at("sqlite", path)
    key = compute_key(f"{name}-part").digest
    stored.change(key, **FINAL[answer])

    def plain(name: str) -> None:
        effects.begin(name)
        charge(f"{name}-part")
        effects.act(name)

    function = make_whole(once, effects, charge) if guarded else plain
    with consuming(make_consumer(queue, function)):
        queue.send({"name": name})
        until(lambda: effects.begun.count(name) >= 2, "it came again")
        if guarded:
            assert (state_of(path, name) or {})["state"] in ("released", "claimed")
        stored.change(key, state="completed", outcome="by_person", completed_at=1.0, message=None)
        until(lambda: effects.counts[name] == 1, "it was done")
        queue.wait_empty()
    stored.close()
    assert effects.counts[name] == 1


def test_a_plain_function_comes_again_where_its_operation_is_in_progress(
    server: SqsServer, once: semel.Once, charge: Any, effects: Effects
) -> None:
    """Nothing else decides about its message, so it is hidden as long as the answer says."""
    queue = Queue.on(server, VisibilityTimeout=30)
    client = Noting(queue.client)

    def plain(name: str) -> None:
        effects.begin(f"plain {name}")
        charge(name)

    with once.claim("charge", "shared", acting="explicit", lease="90 s") as op:
        with consuming(make_consumer(queue, plain, client=client)):
            queue.send({"name": "shared"})
            until(lambda: any(85 <= each <= 100 for each in client.hidden_for()), "hidden for the lease")
        with op.acting():
            pass
