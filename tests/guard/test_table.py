"""The table of moves, walked on every kind of connection: from (state, event) to state, numbers, answer and history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from tests.guard.conftest import make_request
from tests.guard.places import Place
from tests.guard.stored import Ago, Stored

from semel.core.effects import AcceptDuplicate, AcceptMiss, Answer, Hold, Lookup, ProviderKey, Row
from semel.core.operations import Reply
from semel.errors import KeyRefused
from semel.store.guard_begin import begin_known, begin_new, looked
from semel.store.guard_end import act, complete, complete_late, extend, lost, release, uncertain
from semel.store.guard_request import Again, Lost, Request, Written

LOOKUP = Lookup(find=lambda reference: Answer.UNKNOWN, settle="30 s", looks=3, backoff="20 s")
WITHIN = ProviderKey(valid_for="1 h")
EFFECTS = (Row(), Hold(), LOOKUP, WITHIN, AcceptDuplicate(), AcceptMiss())

STALE = {"lease_until": Ago(100), "acting_at": Ago(160)}
NOT_ACTING = {"lease_until": Ago(100), "acting_at": None}
RELEASED = {"state": "released", "token": None, "acting_at": None}
COMPLETED = {"state": "completed", "outcome": "acted", "completed_at": Ago(5), "result": '{"id": 7}'}
HELD = {"state": "held", "held_reason": "nobody knows", "lease_until": Ago(100)}
OTHER_PAYLOAD = "e" * 64


@dataclass
class Case:
    """``before``: columns of a record that the first attempt claimed; ``after``: columns that the event leads to."""

    name: str
    before: dict[str, Any]
    event: Callable[[Scene], Any]
    answer: Callable[[Any], bool]
    after: dict[str, Any] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    writes: bool = True


@dataclass
class Scene:
    """One record, the attempt that made it and the one that comes."""

    place: Place
    first: Request
    second: Request

    def begin(self, effect: Any = None, **options: Any) -> Any:
        self.second = replace(self.second, effect=effect or self.second.effect, **options)
        assert self.place.ask(begin_new(self.second)) is None
        return self.place.ask(begin_known(self.second))

    def look(self, answer: Answer, **options: Any) -> Any:
        return self.place.ask(looked(replace(self.first, effect=LOOKUP), answer, **options))


def replies(reply: Reply, *, wait: float | None = None) -> Callable[[Any], bool]:
    def check(begun: Any) -> bool:
        waited = None if begun.wait is None else begun.wait.total_seconds()
        near = wait is None or (waited is not None and abs(waited - wait) < 5)
        return begun.reply is reply and near

    return check


def is_exactly(value: Any) -> Callable[[Any], bool]:
    return lambda given: bool(given == value)


def is_lost(given: Any) -> bool:
    return isinstance(given, Lost)


RENEWED = {"lease_until": -60}
TAKEN = {**RENEWED, "state": "claimed", "claim": 2, "claims": 2, "token": "second"}
TAKEN_TO_ACT = {**TAKEN, "takeovers": 1, "unsure_until": None, "reference": "first", "generation": 1}
KEPT = {"state": "held", "token": "first", "claim": 1, "takeovers": 0}


def begins(effect: Any = None, **options: Any) -> Callable[[Scene], Any]:
    return lambda scene: scene.begin(effect, **options)


def again(scene: Scene) -> Any:
    return scene.place.ask(begin_known(scene.first))


BEGIN = [
    Case("mine", {}, again, replies(Reply.ACT), {**RENEWED, "claim": 1, "token": "first"}),
    Case("mine, lease over", STALE, again, replies(Reply.ACT), {**RENEWED, "claim": 1, "acting_at": 160}),
    Case(
        "released",
        {**RELEASED, "last_error": "x"},
        begins(),
        replies(Reply.ACT),
        {**TAKEN, "acting_at": 0, "reference": "first", "generation": 1, "takeovers": 0},
    ),
    Case(
        "released, acts later",
        RELEASED,
        begins(acts_from_start=False),
        replies(Reply.ACT),
        {**TAKEN, "acting_at": None},
    ),
    Case(
        "released, other payload",
        {**RELEASED, "reference_at": Ago(500)},
        begins(fingerprint=OTHER_PAYLOAD),
        replies(Reply.ACT),
        {**TAKEN, "reference": "second", "generation": 2, "reference_at": 0, "fingerprint": OTHER_PAYLOAD},
        ["payload_changed"],
    ),
    Case(
        "released, payload unknown",
        RELEASED,
        begins(fingerprint=None),
        replies(Reply.ACT),
        {**TAKEN, "reference": "first", "fingerprint": "f" * 64},
    ),
    *(
        Case(
            f"{name}, other payload",
            before,
            begins(effect, fingerprint=OTHER_PAYLOAD),
            replies(Reply.MISMATCH),
            {"token": "first", "claim": 1},
            ["refused"],
            writes=False,
        )
        for name, before in (("claimed", {}), ("stale", STALE), ("completed", COMPLETED), ("held", HELD))
        for effect in (Hold(), AcceptMiss())
    ),
    *(
        Case(
            f"completed ({outcome})",
            {**COMPLETED, "outcome": outcome},
            begins(),
            replies(Reply.ABANDONED if outcome == "abandoned" else Reply.REPEAT),
            writes=False,
        )
        for outcome in ("acted", "found", "missed", "by_person", "abandoned")
    ),
    *(
        Case(
            f"held, {effect.name}", HELD, begins(effect), replies(Reply.HELD), KEPT, ["refused"], writes=False
        )
        for effect in EFFECTS
    ),
    *(
        Case(
            f"lease runs, {effect.name}",
            {"unsure": 9, "takeovers": 9},
            begins(effect),
            replies(Reply.IN_PROGRESS, wait=60),
            {"claim": 1, "token": "first"},
            writes=False,
        )
        for effect in EFFECTS
    ),
    *(
        Case(
            f"committed midway, {effect.name}",
            {**before, "transaction_id": "12345"},
            begins(effect),
            replies(Reply.HELD),
            {**KEPT, "held_reason": "its handler committed midway", "transaction_id": "12345"},
            ["held"],
        )
        for effect in EFFECTS
        for before in (STALE, NOT_ACTING)
    ),
    *(
        Case(
            f"{name}, {effect.name}",
            {**before, **limit},
            begins(effect),
            replies(Reply.HELD),
            KEPT | limit,
            ["held"],
        )
        for effect in EFFECTS
        for name, before, limit in (
            ("unsure too often", STALE, {"unsure": 3}),
            ("taken over too often", NOT_ACTING, {"takeovers": 5}),
        )
    ),
    *(
        Case(
            f"stale before acting, {effect.name}",
            {**NOT_ACTING, "unsure": 2},
            begins(effect, acts_from_start=False),
            replies(Reply.ACT),
            {**TAKEN_TO_ACT, "acting_at": None, "extra_used": 0, "effect": effect.name},
            ["takeover"],
        )
        for effect in EFFECTS
    ),
    Case("stale, hold", STALE, begins(Hold()), replies(Reply.HELD), {**KEPT, "unsure_until": 100}, ["held"]),
    Case("stale, row", STALE, begins(Row()), replies(Reply.HELD), KEPT, ["held"]),
    Case(
        "stale, provider key within its window",
        {**STALE, "reference_at": Ago(3500)},
        begins(WITHIN),
        replies(Reply.ACT),
        {**TAKEN_TO_ACT, "acting_at": 160, "reference_at": 3500},
        ["takeover"],
    ),
    Case(
        "stale, provider key past its window less the run",
        {**STALE, "reference_at": Ago(3595)},
        begins(WITHIN),
        replies(Reply.HELD),
        KEPT,
        ["held"],
    ),
    Case(
        "stale, provider key past its window, then a look-up",
        {**STALE, "reference_at": Ago(3600)},
        begins(ProviderKey(valid_for="1 h", then=LOOKUP)),
        replies(Reply.LOOK),
        {**TAKEN, "looks": 1, "reference_at": 3600},
        ["takeover"],
    ),
    Case(
        "stale, a duplicate is left",
        STALE,
        begins(AcceptDuplicate(extra=2)),
        replies(Reply.ACT),
        {**TAKEN_TO_ACT, "acting_at": 160, "extra_used": 1},
        ["takeover"],
    ),
    Case(
        "stale, no duplicate is left",
        {**STALE, "extra_used": 2},
        begins(AcceptDuplicate(extra=2)),
        replies(Reply.HELD),
        KEPT,
        ["held"],
    ),
    Case(
        "stale, a miss is accepted",
        {**STALE, "message": '{"a": 1}'},
        begins(AcceptMiss()),
        replies(Reply.REPEAT),
        {"state": "completed", "outcome": "missed", "completed_at": 0, "message": None, "result": None},
        ["missed"],
    ),
    Case(
        "stale, look-up before it settles",
        {**STALE, "lease_until": Ago(10)},
        begins(LOOKUP),
        replies(Reply.IN_PROGRESS, wait=20),
        {"token": "first"},
        writes=False,
    ),
    Case(
        "stale, look-up settled",
        STALE,
        begins(LOOKUP),
        replies(Reply.LOOK),
        {**TAKEN, "takeovers": 0, "looks": 1, "acting_at": 160, "unsure_until": 100, "reference": "first"},
        ["takeover"],
    ),
    Case(
        "stale again, settled by the last that may have acted",
        {**STALE, "lease_until": Ago(1), "unsure_until": Ago(100), "looks": 1},
        begins(LOOKUP),
        replies(Reply.LOOK),
        {**TAKEN, "looks": 2, "unsure_until": 100},
        ["takeover"],
    ),
    Case("stale, no look left", {**STALE, "looks": 3}, begins(LOOKUP), replies(Reply.HELD), KEPT, ["held"]),
]

LOOKING = {"claim": 2, "looks": 1, "unsure_until": Ago(100), "acting_at": Ago(160), "lease_until": Ago(-30)}
LOOKED = [
    Case(
        "found done",
        {**LOOKING, "message": "{}"},
        lambda scene: scene.look(Answer.DONE, result='{"id": 9}'),
        lambda begun: begun.reply is Reply.REPEAT and begun.record.result == {"id": 9},
        {"state": "completed", "outcome": "found", "claim": 2, "message": None},
        ["looked"],
    ),
    Case(
        "found not done",
        {**LOOKING, "reference_at": Ago(500)},
        lambda scene: scene.look(Answer.NOT_DONE),
        lambda begun: begun.reply is Reply.ACT and begun.acting,
        {**RENEWED, "looks": 0, "generation": 2, "reference_at": 0, "unsure_until": None, "state": "claimed"},
        ["looked"],
    ),
    Case(
        "found unknown",
        LOOKING,
        lambda scene: scene.look(Answer.UNKNOWN, error="no answer"),
        replies(Reply.IN_PROGRESS, wait=20),
        {"state": "claimed", "lease_until": -20, "last_error": "no answer", "unsure_until": 100, "looks": 1},
        ["looked"],
    ),
    Case(
        "found unknown for the second time",
        {**LOOKING, "looks": 2},
        lambda scene: scene.look(Answer.UNKNOWN),
        replies(Reply.IN_PROGRESS, wait=40),
        {"lease_until": -40},
        ["looked"],
    ),
    Case(
        "found unknown for the last time",
        {**LOOKING, "looks": 3},
        lambda scene: scene.look(Answer.UNKNOWN),
        replies(Reply.HELD),
        {"state": "held", "held_reason": "3 look-ups could not tell"},
        ["held"],
    ),
    Case(
        "the look-up outlived its lease",
        {**LOOKING, "lease_until": Ago(5)},
        lambda scene: scene.look(Answer.NOT_DONE),
        replies(Reply.ACT),
        RENEWED,
        ["looked"],
    ),
    Case(
        "taken over while it looked",
        {**LOOKING, "token": "z" * 32},
        lambda scene: scene.look(Answer.NOT_DONE),
        lambda answer: isinstance(answer, Again),
        {"generation": 1, "claim": 2},
        writes=False,
    ),
]


def end(operation: Callable[..., Any], **options: Any) -> Callable[[Scene], Any]:
    return lambda scene: scene.place.ask(operation(scene.first, **options))


DONE = {"result": '{"id": 7}', "result_dropped": False}
ACTED = {"state": "completed", "outcome": "acted", "completed_at": 0, "message": None}
ENDS = [
    *(
        Case(
            f"acting, {name}",
            before,
            end(act),
            is_exactly(True),
            {**RENEWED, "acting_at": acting, "claim": 1},
        )
        for name, before, acting in (
            ("first", {"acting_at": None, "lease_until": Ago(-5)}, 0),
            ("again", {"acting_at": Ago(50)}, 50),
            ("past its lease", NOT_ACTING, 0),
        )
    ),
    Case("extend", {"lease_until": Ago(-5)}, end(extend), is_exactly(True), RENEWED),
    Case("extend past its lease", STALE, end(extend), is_exactly(True), {**RENEWED, "acting_at": 160}),
    Case("complete", {"message": "{}"}, end(complete, **DONE), is_exactly(True), ACTED),
    Case(
        "complete past its lease: not at once", STALE, end(complete, **DONE), is_exactly(False), writes=False
    ),
    Case(
        "complete past its lease",
        STALE,
        end(complete_late, **DONE),
        is_exactly(Written("late")),
        ACTED,
        ["late"],
    ),
    Case("complete again: not at once", COMPLETED, end(complete, **DONE), is_exactly(False), writes=False),
    Case("complete again", COMPLETED, end(complete_late, **DONE), is_exactly(Written()), writes=False),
    Case(
        "complete without a result",
        {},
        end(complete, result=None, result_dropped=True),
        is_exactly(True),
        {**ACTED, "result": None, "result_dropped": 1},
    ),
    Case(
        "not done",
        {"reference_at": Ago(50), "unsure": 1},
        end(release, error="declined"),
        is_exactly(Written()),
        {
            **RELEASED,
            "last_error": "declined",
            "claim": 1,
            "reference": "first",
            "reference_at": 50,
            "unsure": 1,
        },
        ["released"],
    ),
    Case(
        "uncertain",
        {"acting_at": None},
        end(uncertain, error="time-out"),
        is_exactly(Written()),
        {
            "state": "claimed",
            "lease_until": 0,
            "unsure": 1,
            "unsure_until": 0,
            "acting_at": 0,
            "token": "first",
        },
        ["uncertain"],
    ),
    Case(
        "held, complete",
        HELD,
        end(complete_late, **DONE),
        is_exactly(Written("late_finish")),
        {**ACTED, "held_reason": None},
        ["late_finish"],
    ),
    *(
        Case(f"held, {name}", HELD, end(operation, error="x"), is_lost, KEPT, ["evidence"])
        for name, operation in (("not done", release), ("uncertain", uncertain))
    ),
    *(
        Case(f"{state}, mine, {name}", before, end(operation), is_exactly(False), before_ends, writes=False)
        for state, before, before_ends in (
            ("held", HELD, KEPT),
            ("completed", COMPLETED, {"state": "completed", "token": "first"}),
        )
        for name, operation in (("acting", act), ("extend", extend))
    ),
    *(
        Case(
            f"{state} while it looked",
            {**LOOKING, **before},
            lambda scene: scene.look(Answer.NOT_DONE),
            replies(reply),
            {"state": state, "generation": 1, "token": "first"},
            writes=False,
        )
        for state, before, reply in (("held", HELD, Reply.HELD), ("completed", COMPLETED, Reply.REPEAT))
    ),
    Case(
        "committed midway, complete",
        {"transaction_id": "1"},
        end(complete, **DONE),
        is_exactly(False),
        writes=False,
    ),
    Case(
        "committed midway, complete late",
        {**STALE, "transaction_id": "1"},
        end(complete_late, **DONE),
        is_lost,
        {"state": "claimed"},
        ["evidence"],
    ),
    *(
        Case(
            f"{state}, not mine, {name}",
            before,
            event,
            answer,
            {},
            history,
            writes=bool(history) and state in ("stale", "held"),
        )
        for state, before in (
            ("claimed", {"token": "z" * 32, "claim": 2}),
            ("stale", {**STALE, "token": "z" * 32, "claim": 2}),
            ("completed", {**COMPLETED, "token": "z" * 32}),
            ("held", {**HELD, "token": "z" * 32}),
            ("released", RELEASED),
        )
        for name, event, answer, history in (
            ("acting", end(act), is_exactly(False), []),
            ("extend", end(extend), is_exactly(False), []),
            ("complete", end(complete, **DONE), is_exactly(False), []),
            ("complete late", end(complete_late, **DONE), is_lost, ["evidence"]),
            ("release", end(release, error="x"), is_lost, ["evidence"]),
            ("uncertain", end(uncertain, error="x"), is_lost, ["evidence"]),
            ("told that it is lost", end(lost, tried="acting"), is_lost, ["evidence"]),
        )
    ),
]


@pytest.mark.parametrize("case", BEGIN + LOOKED + ENDS, ids=lambda case: case.name)
def test_every_move_is_as_the_table_says(place: Place, stored: Stored, case: Case) -> None:
    first = make_request(place.dialect)
    begun = place.ask(begin_new(first))
    assert begun is not None
    assert (begun.reply, begun.claim, begun.reference) == (Reply.ACT, 1, first.reference)
    stored.change(first.key, **case.before)
    before = stored.record(first.key)
    assert before is not None
    scene = Scene(place, first, make_request(place.dialect, key=first.key))
    answer = case.event(scene)
    assert case.answer(answer), answer
    after = stored.record(first.key)
    assert after is not None
    _compare(after, case.after, scene)
    assert [event for event, *_ in stored.events(first.key)] == case.history
    if case.writes:
        assert after["revision"] == before["revision"] + 1
    else:
        times = ("claimed_at", "lease_until", "acting_at", "unsure_until", "reference_at", "completed_at")
        unchanged = {name: value for name, value in before.items() if name not in times}
        assert {name: after[name] for name in unchanged} == unchanged
        for name in times:
            assert (after[name] is None) == (before[name] is None)


def _compare(after: dict[str, Any], wanted: dict[str, Any], scene: Scene) -> None:
    """Times are seconds ago, to a second or two; "first" and "second" are what those attempts brought."""
    for name, value in wanted.items():
        found = after[name]
        if isinstance(value, Ago):
            value = value.seconds
        if name in ("token", "reference") and value in ("first", "second"):
            value = getattr(getattr(scene, value), name)
        if name.endswith(("_at", "_until")) and value is not None:
            assert found is not None, name
            assert -1 < found - value < 5, (name, found, value)
        else:
            assert found == value, (name, found, value)


def test_without_a_record_the_first_claims(place: Place, stored: Stored) -> None:
    request = make_request(
        place.dialect, label="order/7", message='{"queue": "x"}', scope="tenant", key_version=2
    )
    assert place.ask(begin_new(request)).reply is Reply.ACT
    record = stored.record(request.key)
    assert record is not None
    expected = {
        "state": "claimed",
        "revision": 1,
        "claim": 1,
        "claims": 1,
        "generation": 1,
        "label": "order/7",
    }
    expected |= {"reference": request.reference, "token": request.token, "key_version": 2, "effect": "hold"}
    assert {name: record[name] for name in expected} == expected
    assert -61 < record["lease_until"] < -55
    assert stored.events(request.key) == []


def test_a_record_that_is_gone_is_begun_anew(place: Place) -> None:
    request = make_request(place.dialect)
    assert isinstance(place.ask(begin_known(request)), Again)
    for operation in (release, uncertain):
        assert place.ask(operation(request, error="x")) == Lost(None)
    assert place.ask(complete_late(request, **DONE)) == Lost(None)
    assert place.ask(act(request)) is False


def test_an_acknowledgement_that_was_lost_is_no_new_claim(place: Place, stored: Stored) -> None:
    """The insert went through, its answer did not: the same attempt asks again and acts, with its whole lease."""
    request = make_request(place.dialect)
    place.ask(begin_new(request))
    stored.change(request.key, lease_until=Ago(-20))
    assert place.ask(begin_new(request)) is None
    assert place.ask(begin_known(request)).reply is Reply.ACT
    record = stored.record(request.key)
    assert record is not None
    assert record["claim"] == 1
    assert -61 < record["lease_until"] < -55


@pytest.mark.parametrize("field", ["scope", "job_type"])
@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "a "), ("a", "A"), ("é", "e\u0301"), ("ß", "ss"), ("a", "á"), ("1", "01")],
)
def test_names_that_look_alike_are_not_one(place: Place, field: str, one: str, other: str) -> None:
    request = make_request(place.dialect, **{field: one})
    assert place.ask(begin_new(request)) is not None
    assert place.ask(begin_new(replace(request, token="t" * 32, **{field: other}))) is not None
    assert place.ask(begin_new(replace(request, token="u" * 32))) is None


@pytest.mark.parametrize("field", ["scope", "job_type"])
def test_a_nul_in_a_name_is_refused_on_every_database(field: str) -> None:
    """PostgreSQL stores none: one that the others took would be another operation there, or an error."""
    for dialect in ("postgresql", "mysql", "sqlite"):
        with pytest.raises(KeyRefused, match=f"{field} has a NUL"):
            make_request(dialect, **{field: "x\0y"})


def test_the_database_has_the_clock(place: Place, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    request = make_request(place.dialect, lease=timedelta(seconds=60))
    for shift in (-3600, 3600):
        monkeypatch.setattr("time.time", lambda shift=shift: 1_800_000_000 + shift)
        rival = replace(request, token="r" * 32)
        place.ask(begin_new(request))
        assert place.ask(begin_known(rival)).reply is Reply.IN_PROGRESS
    record = stored.record(request.key)
    assert record is not None
    assert -61 < record["lease_until"] < -50
