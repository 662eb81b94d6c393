"""Rivals at one operation, on real connections: one acts, the others hear a defined answer, soon."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.guard.conftest import make_request
from tests.guard.places import Place
from tests.guard.stored import Ago, Stored

from semel.core.effects import AcceptDuplicate, Row
from semel.core.operations import Reply
from semel.errors import RetryTransaction
from semel.store.faults import LockBusy
from semel.store.guard_begin import begin_known, begin_new, begin_row
from semel.store.guard_end import complete, complete_row
from semel.store.guard_request import Again, Request
from semel.store.own_connections import OwnSessions, open_own
from semel.store.run import run

RIVALS = 8
ROUNDS = 25


class Crowd:
    """As many threads as rivals, each with a connection of its own, that start each round together."""

    def __init__(self, target: Any) -> None:
        self.owns: list[OwnSessions] = [open_own(target) for _ in range(RIVALS)]
        self.barrier = threading.Barrier(RIVALS)

    def go(self, act: Callable[[Any], Any]) -> list[Any]:
        """What each came to: an answer or an error."""
        answers: list[Any] = []

        def one(own: OwnSessions) -> None:
            with own.session() as session:
                self.barrier.wait(60)
                try:
                    answers.append(act(session))
                except Exception as error:
                    answers.append(error)

        threads = [threading.Thread(target=one, args=(own,)) for own in self.owns]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(answers) == RIVALS
        return answers

    def close(self) -> None:
        for own in self.owns:
            own.close()


@pytest.fixture
def crowd(database: Place) -> Iterator[Crowd]:
    made = Crowd(database.target)
    yield made
    made.close()


def rival(request: Request) -> Request:
    return make_request(request.dialect, key=request.key, effect=request.effect)


def begin(request: Request, session: Any) -> Any:
    """As the guard does it, with bounded tries; past them it says busy."""
    deadlocks = again = 0
    while again < 10 and deadlocks < 15:
        try:
            begun = run(begin_new(request), session)
            if begun is None:
                begun = run(begin_known(request), session)
        except RetryTransaction:
            deadlocks += 1
            time.sleep(0.005 * deadlocks)
            continue
        if not isinstance(begun, Again):
            return begun.reply
        again += 1
    raise LockBusy("It was busy at every try.")


def told(answers: list[Any]) -> Counter[Any]:
    return Counter(
        each if isinstance(each, Reply) or each is None else type(each).__name__ for each in answers
    )


def test_one_of_eight_claims_a_new_operation(database: Place, crowd: Crowd, stored_there: Stored) -> None:
    for _ in range(ROUNDS):
        first = make_request(database.dialect)
        counted = told(crowd.go(lambda session, first=first: begin(rival(first), session)))
        assert counted[Reply.ACT] == 1, counted
        assert set(counted) <= {Reply.ACT, Reply.IN_PROGRESS, "LockBusy"}
        record = stored_there.record(first.key)
        assert record is not None
        assert (record["claim"], record["claims"], record["revision"]) == (1, 1, 1)


def test_one_of_eight_takes_a_stale_one_over(database: Place, crowd: Crowd, stored_there: Stored) -> None:
    for _ in range(ROUNDS):
        first = make_request(database.dialect, effect=AcceptDuplicate(extra=5))
        database.ask(begin_new(first))
        stored_there.change(first.key, lease_until=Ago(1))
        counted = told(crowd.go(lambda session, first=first: begin(rival(first), session)))
        assert counted[Reply.ACT] == 1, counted
        assert set(counted) <= {Reply.ACT, Reply.IN_PROGRESS, "LockBusy"}
        record = stored_there.record(first.key)
        assert record is not None
        assert (record["claim"], record["takeovers"], record["extra_used"]) == (2, 1, 1)
        assert [event for event, *_ in stored_there.events(first.key)] == ["takeover"]


def test_one_of_eight_claims_a_released_one(database: Place, crowd: Crowd, stored_there: Stored) -> None:
    for _ in range(ROUNDS):
        first = make_request(database.dialect)
        database.ask(begin_new(first))
        stored_there.change(first.key, state="released", token=None, acting_at=None)
        counted = told(crowd.go(lambda session, first=first: begin(rival(first), session)))
        assert counted[Reply.ACT] == 1, counted
        assert stored_there.record(first.key)["claim"] == 2  # type: ignore[index]


def test_a_repeat_never_meets_anything_but_the_answer(
    database: Place, crowd: Crowd, stored_there: Stored
) -> None:
    first = make_request(database.dialect)
    database.ask(begin_new(first))
    database.ask(complete(first, result="1", result_dropped=False))
    for _ in range(ROUNDS // 5):
        counted = told(crowd.go(lambda session: begin(rival(first), session)))
        assert set(counted) <= {Reply.REPEAT, "LockBusy"}, counted
        assert counted[Reply.REPEAT] >= 1


def test_eight_rows_at_once_have_one_effect(database: Place, crowd: Crowd, stored_there: Stored) -> None:
    """Every second winner rolls back; the rivals hear busy, a repeat, or that their transaction is to be run again."""
    stored_there.ask("CREATE TABLE shop (id integer)")
    for number in range(ROUNDS):
        first = make_request(database.dialect, effect=Row())

        def act(session: Any, first: Request = first, number: int = number) -> Any:
            request = rival(first)
            try:
                with session.transaction():
                    begun = run(begin_row(request), session)
                    if begun is None or isinstance(begun, Again):
                        return begun
                    if begun.reply is Reply.ACT:
                        session.run_text(f"INSERT INTO shop VALUES ({number})")
                        assert run(complete_row(request, result=None, result_dropped=False), session)
                        if number % 2 and request.token < "8":
                            raise ZeroDivisionError
                    return begun.reply
            except ZeroDivisionError:
                return None

        counted = told(crowd.go(act))
        rows = stored_there.ask(f"SELECT count(*) FROM shop WHERE id = {number}")[0][0]
        record = stored_there.record(first.key)
        assert rows == (0 if record is None else 1), counted
        assert rows == counted[Reply.ACT]
        assert set(counted) <= {Reply.ACT, Reply.REPEAT, None, "LockBusy", "RetryTransaction"}, counted
        if not number % 2:
            assert rows == 1, counted


def test_waiting_for_an_uncommitted_insert_is_bounded(database: Place, stored_there: Stored) -> None:
    """D4: the lease is stamped before the wait, so the wait is short, and no claim comes of it."""
    first = make_request(database.dialect)
    own = open_own(database.target)
    with own.session() as session, session.transaction():
        run(begin_new(first), session)
        started = time.monotonic()
        with pytest.raises(LockBusy):
            database.ask(begin_new(rival(first)))
        assert time.monotonic() - started < 4
    with own.session() as session, session.transaction():
        run(begin_known(first), session)
        started = time.monotonic()
        with pytest.raises(LockBusy):
            database.ask(begin_known(rival(first)))
        with pytest.raises(LockBusy):
            database.ask(complete(first, result=None, result_dropped=False))
        assert time.monotonic() - started < 6
    own.close()
    assert database.ask(begin_known(rival(first))).reply is Reply.IN_PROGRESS


def test_the_first_of_three_inserts_rolls_back(database: Place, stored_there: Stored) -> None:
    """D2: InnoDB ends one of the two that waited; it tries again, and one acts."""
    for _ in range(5):
        first = make_request(database.dialect)
        answers: list[Any] = []
        owns = [open_own(database.target) for _ in range(3)]
        ready = threading.Event()

        def wait_and_claim(
            own: OwnSessions, first: Request = first, answers: Any = answers, ready: Any = ready
        ) -> None:
            with own.session() as session:
                ready.wait(10)
                try:
                    answers.append(begin(rival(first), session))
                except LockBusy:
                    answers.append(begin(rival(first), session))

        threads = [threading.Thread(target=wait_and_claim, args=(own,)) for own in owns[1:]]
        for thread in threads:
            thread.start()
        with owns[0].session() as session:
            try:
                with session.transaction():
                    run(begin_new(first), session)
                    ready.set()
                    time.sleep(0.1)
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
        for thread in threads:
            thread.join(30)
        assert told(answers) == {Reply.ACT: 1, Reply.IN_PROGRESS: 1}
        for own in owns:
            own.close()


def test_a_purge_in_between_gives_a_defined_answer(
    database: Place, crowd: Crowd, stored_there: Stored
) -> None:
    """Rows vanish between the insert and the read: the loop begins anew, and ends."""
    first = make_request(database.dialect)
    stop = threading.Event()
    words = stored_there._words

    def purge() -> None:
        other = Stored.at(database.dialect, database.where)
        while not stop.is_set():
            try:
                other.ask(f"DELETE FROM {words.operations} WHERE {words.key} = '{first.key}'")
            except Exception:
                time.sleep(0.01)
            time.sleep(0.002)
        other.close()

    purger = threading.Thread(target=purge)
    purger.start()
    try:
        for _ in range(ROUNDS // 2):
            counted = told(crowd.go(lambda session: begin(replace(rival(first)), session)))
            assert set(counted) <= {Reply.ACT, Reply.IN_PROGRESS, "LockBusy"}, counted
    finally:
        stop.set()
        purger.join()
