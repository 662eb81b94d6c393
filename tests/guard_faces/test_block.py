"""The guard as a block: ``with once.claim(…) as op`` and ``async with once.aclaim(…) as op``."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.guard.stored import Ago

from semel import AcceptMiss, ConfigurationError, Held, KeyRefused, Lookup, Row
from semel.core.effects import DONE, NOT_DONE, UNKNOWN, Found
from semel.errors import ClaimLost, InProgress

pytestmark = pytest.mark.usefixtures("stored")


class Blocks:
    """The same block, sync and async; each call is one delivery."""

    def __init__(self, once, kind):
        self.once, self.kind = once, kind

    def run(self, work, *key, **options):
        if self.kind == "sync":
            with self.once.claim("charge", *key, **options) as op:
                return self._repeat_or(op, work)
        return asyncio.run(self._run(work, key, options))

    async def _run(self, work, key, options):
        try:
            async with self.once.aclaim("charge", *key, **options) as op:
                if op.is_repeat:
                    return "repeat", op.result
                result = work(op)
                if options.get("acting") == "explicit":
                    async with op.acting():
                        pass
                await op.done(result)
                return "acted", result
        finally:
            await self.once.aclose()

    def _repeat_or(self, op, work):
        if op.is_repeat:
            return "repeat", op.result
        result = work(op)
        if op.declaration.acting == "explicit":
            with op.acting():
                pass
        return "acted", op.done(result)


@pytest.fixture(params=["sync", "async"])
def blocks(request, once):
    return Blocks(once, request.param)


def fail(op):
    raise ValueError("inside")


@pytest.mark.parametrize("acting", ["explicit", "from_start"])
def test_a_repeat_has_the_result(blocks, only, acting):
    assert blocks.run(lambda op: op.reference, "order", 7, acting=acting)[0] == "acted"
    again = blocks.run(fail, "order", 7, acting=acting)
    assert again == ("repeat", only()["reference"])
    assert only()["label"] == "order/7"


def test_an_exception_before_acting_releases_and_after_it_is_uncertain(blocks, only):
    with pytest.raises(ValueError, match="inside"):
        blocks.run(fail, 1, acting="explicit")
    assert only()["state"] == "released"
    assert blocks.run(lambda op: 5, 1, acting="explicit") == ("acted", 5)
    assert blocks.run(fail, 1) == ("repeat", 5)


def test_from_its_start_an_exception_is_uncertain(blocks, only):
    with pytest.raises(ValueError, match="inside"):
        blocks.run(fail, 1)
    assert only()["unsure"] == 1
    with pytest.raises(Held):
        blocks.run(fail, 1)


def test_a_listed_exception_releases(blocks, only):
    with pytest.raises(ValueError, match="inside"):
        blocks.run(fail, 1, not_done=[ValueError])
    assert only()["state"] == "released"


def test_a_miss_is_a_repeat(blocks, only):
    with pytest.raises(ValueError, match="inside"):
        blocks.run(fail, 1, effect=AcceptMiss())
    assert blocks.run(fail, 1, effect=AcceptMiss()) == ("repeat", None)
    assert only()["outcome"] == "missed"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_lookup_decides(once, stored, only, kind):
    blocks, asked = Blocks(once, kind), []

    def find(reference):
        asked.append(reference)
        return answers.pop(0)

    answers = [UNKNOWN, NOT_DONE, Found("found it")]
    effect = Lookup(find, settle=0)
    with pytest.raises(ValueError, match="inside"):
        blocks.run(fail, 1, effect=effect)
    first = only()["reference"]
    with pytest.raises(InProgress):
        blocks.run(fail, 1, effect=effect)
    stored.change(only()["key"], lease_until=Ago(1))
    with pytest.raises(ValueError, match="inside"):
        blocks.run(fail, 1, effect=effect)
    assert asked == [first, first]
    assert only()["reference"] != first, "after NOT_DONE the reference is a new one"
    assert only()["generation"] == 2
    assert blocks.run(fail, 1, effect=effect) == ("repeat", "found it")
    assert asked[2] == only()["reference"]
    assert only()["outcome"] == "found"


@pytest.mark.parametrize("answer", [DONE, True, "done", None])
def test_what_a_lookup_can_answer(once, stored, only, answer):
    """Only the three words count; anything else is UNKNOWN, and nobody acts on it. ("done" is the word itself.)"""
    blocks = Blocks(once, "sync")
    effect = Lookup(lambda reference: answer, settle=0)
    with pytest.raises(ValueError, match="inside"):
        blocks.run(fail, 1, effect=effect)
    if answer is DONE:
        assert blocks.run(fail, 1, effect=effect) == ("repeat", None)
    else:
        with pytest.raises(InProgress):
            blocks.run(fail, 1, effect=effect)


def test_a_lookup_that_outlives_its_lease_does_not_act(once, stored, only):
    acted = []

    def find(reference):
        stored.change(only()["key"], lease_until=Ago(9))
        if len(asked) < 2:
            asked.append(reference)
            with once.claim("charge", 1, effect=effect):
                acted.append("the rival")
        return NOT_DONE

    asked = []
    effect = Lookup(find, settle=0)
    with pytest.raises(ValueError, match="inside"), once.claim("charge", 1, effect=effect):
        fail(None)
    asked.append("")
    with pytest.raises(ClaimLost, match="look-up"):
        with once.claim("charge", 1, effect=effect):
            acted.append("the first")
    assert acted == ["the rival"]


def test_a_repeat_cannot_act(once):
    with once.claim("charge", 1):
        pass
    with once.claim("charge", 1) as op:
        assert op.is_repeat
        with pytest.raises(ConfigurationError, match="is a repeat"), op.acting():
            pass


def test_a_block_can_be_entered_again(once):
    block = once.claim("charge", 1)
    with block as op:
        assert not op.is_repeat
    with block as op:
        assert op.is_repeat


def test_a_block_keeps_its_lease_where_it_extends(once, only):
    with once.claim("charge", 1, extend=True, lease="0.6 s", longest_run="60 s"):
        first = only()["revision"]
        for _ in range(200):
            if only()["revision"] >= first + 2:
                break
            threading.Event().wait(0.05)
        assert only()["revision"] >= first + 2
    assert only()["state"] == "completed"


def test_refusals(once, stored):
    with pytest.raises(ConfigurationError, match=r"does not take Row"):
        once.claim("charge", 1, effect=Row())
    for key in [(), (None,), ("",), (1.5,)]:
        with pytest.raises(KeyRefused), once.claim("charge", *key):
            pass
    with pytest.raises(KeyRefused, match="no argument 'tenant' for the scope"):
        with once.claim("charge", 1, scope=lambda tenant: tenant):
            pass
    assert stored.count() == 0


def test_an_async_block_that_does_not_say_done_is_completed(once, only):
    async def twice():
        async with once.aclaim("charge", 1) as op:
            assert not op.is_repeat
        async with once.aclaim("charge", 1) as op:
            assert op.is_repeat
        await once.aclose()

    asyncio.run(twice())
    assert (only()["state"], only()["claim"]) == ("completed", 1)
