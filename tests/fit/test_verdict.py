"""Every verdict: over all combinations of the answers that decide, and each answer that stops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.docs.pages import ROOT

import semel
from semel.errors import ConfigurationError
from semel.fit.questions import BY_ID, QUESTIONS, UNKNOWN, is_asked
from semel.fit.reasons import REASONS
from semel.fit.verdict import check_answers, judge, possible, settle_unknown, suggest

FITS = {
    "job": "charge-order",
    "identifier": "stable",
    "key_stays": "yes",
    "one_effect": "yes",
    "key_plain": "yes",
    "personal": "no",
    "enqueuers": "yes",
    "database": "postgresql",
    "effect": "outside",
    "in_transaction": "no",
    "provider_key": "yes",
    "provider_window": "24 h",
    "lookup": "yes",
    "lookup_settle": "2 min",
    "undo": "no",
    "duplicate_ok": "no",
    "miss_ok": "no",
    "person": "yes",
    "policy": "provider_key",
    "longest_run": "45 s",
    "longest_redelivery": "14 days",
    "next_steps": "no",
    "staging": "yes",
}
ROWS = FITS | {"effect": "rows", "commits_midway": "no", "policy": "row"}


def codes(**changed: str) -> set[str]:
    return {reason.code for reason in judge(FITS | changed).reasons}


def test_what_fits_says_what_to_declare() -> None:
    verdict = judge(FITS)
    assert verdict.fits
    assert verdict.policy == verdict.chosen == "provider_key"
    first, second = verdict.lines
    names = {"semel": semel, "find": print}
    exec(first.replace('"postgresql://…"', '"fit.db"'), names)
    exec(f"{second.replace('…', 'order_id')}\ndef charge(op, order_id): ...", names)
    declaration = names["charge"].declaration  # type: ignore[attr-defined]
    assert declaration.job_type == "charge-order"
    assert isinstance(declaration.effect, semel.ProviderKey)
    assert isinstance(declaration.effect.then, semel.Lookup)
    assert declaration.lease >= 2 * declaration.longest_run


POLICIES = {
    "row": semel.Row,
    "provider_key": semel.ProviderKey,
    "lookup": semel.Lookup,
    "hold": semel.Hold,
    "accept_duplicate": semel.AcceptDuplicate,
    "accept_miss": semel.AcceptMiss,
}


@pytest.mark.parametrize("policy", POLICIES)
def test_the_lines_of_each_policy_declare_its_effect(policy: str) -> None:
    able = {"duplicate_ok": "yes", "miss_ok": "yes"}
    verdict = judge((ROWS if policy == "row" else FITS | able) | {"policy": policy})
    assert verdict.fits, verdict.reasons
    names = {"semel": semel, "find": print}
    exec(
        f'once = semel.Once("fit.db")\n{verdict.lines[1].replace("…", "order_id")}\ndef act(op, order_id): ...',
        names,
    )
    assert type(names["act"].declaration.effect) is POLICIES[policy]  # type: ignore[attr-defined]


STOPS = {
    f"{name}-{answer}": (name, answer)
    for name, answers in {
        "identifier": ("delivery", "none", UNKNOWN),
        "key_stays": ("no", UNKNOWN),
        "one_effect": ("no", UNKNOWN),
        "key_plain": ("no", UNKNOWN),
        "enqueuers": ("no", UNKNOWN),
        "database": ("none", "replica", "sqlite_shared", UNKNOWN),
        "effect": ("several", UNKNOWN),
        "in_transaction": ("yes", UNKNOWN),
        "provider_window": (UNKNOWN,),
        "lookup_settle": (UNKNOWN,),
        "policy": (UNKNOWN, "row"),
        "longest_run": (UNKNOWN,),
        "longest_redelivery": (UNKNOWN,),
        "staging": ("no", UNKNOWN),
        "job": (UNKNOWN,),
    }.items()
    for answer in answers
}


@pytest.mark.parametrize("name", STOPS)
def test_each_answer_that_stops_stops_by_itself(name: str) -> None:
    question, answer = STOPS[name]
    verdict = judge(FITS | {question: answer})
    assert not verdict.fits
    assert verdict.lines == ()
    assert all(reason.what and reason.change for reason in verdict.reasons)
    if answer != UNKNOWN:
        assert len(verdict.reasons) == 1


@pytest.mark.parametrize("missing", [question.id for question in QUESTIONS if not question.unknown_as])
def test_what_is_needed_and_not_answered_never_fits(missing: str) -> None:
    for whole in (FITS, ROWS):
        if not is_asked(BY_ID[missing], whole):
            continue
        rest = {name: answer for name, answer in whole.items() if name != missing}
        assert not judge(rest).fits, missing


def test_a_row_that_commits_midway_stops() -> None:
    assert not judge(ROWS | {"commits_midway": "yes"}).fits
    assert judge(ROWS).fits


def test_every_other_combination_of_needed_answers_stops() -> None:
    """Each pair of wrong answers gives both reasons."""
    for (one, first), (two, second) in itertools.combinations(STOPS.values(), 2):
        if one != two:
            assert not judge(FITS | {one: first, two: second}).fits


DECIDING = {
    "effect": ("rows", "outside", "both", "several"),
    "commits_midway": ("yes", "no"),
    "provider_key": ("yes", "no", UNKNOWN),
    "provider_window": ("24 h", "1 min"),
    "lookup": ("yes", "no", UNKNOWN),
    "undo": ("yes", "no"),
    "duplicate_ok": ("yes", "no", UNKNOWN),
    "miss_ok": ("yes", "no"),
    "person": ("yes", "no", UNKNOWN),
}


def combinations() -> Iterator[dict[str, str]]:
    for values in itertools.product(*DECIDING.values()):
        yield FITS | dict(zip(DECIDING, values, strict=True))


def able(answers: dict[str, str]) -> set[str]:
    """Which policies hold what they promise: said once more, apart from the code."""
    yes = {name for name, answer in answers.items() if answer == "yes"}
    if answers["effect"] == "rows":
        return set() if "commits_midway" in yes else {"row"}
    if answers["effect"] == "several":
        return set()
    found = set()
    if "provider_key" in yes and answers["provider_window"] == "24 h" and yes & {"lookup", "person"}:
        found.add("provider_key")
    if "lookup" in yes:
        found.add("lookup")
    if "duplicate_ok" in yes:
        found.add("accept_duplicate")
    if "miss_ok" in yes:
        found.add("accept_miss")
    if "person" in yes:
        found.add("hold")
    return found


def test_the_suggestion_is_right_for_every_combination() -> None:
    seen: dict[str | None, int] = {}
    for answers in combinations():
        allowed, suggested = able(answers), suggest(settle_unknown(answers))
        seen[suggested] = seen.get(suggested, 0) + 1
        assert set(possible(settle_unknown(answers))) == allowed
        if not allowed:
            assert suggested is None
            continue
        if allowed & {"row", "provider_key", "lookup"}:
            best = next(each for each in ("row", "provider_key", "lookup") if each in allowed)
        elif answers["undo"] == "no" and "hold" in allowed:
            best = "hold"
        else:
            best = next(each for each in ("accept_duplicate", "accept_miss", "hold") if each in allowed)
        assert suggested == best, answers
    assert seen.keys() == {*POLICIES, None}


def test_a_look_up_whose_answer_may_come_too_early_is_no_policy() -> None:
    answers = settle_unknown(FITS | {"lookup_settle": UNKNOWN})
    assert possible(answers) == ("provider_key", "hold")
    assert possible(answers | {"person": "no"}) == (), "nothing decides when the key is forgotten"


def test_it_fits_exactly_where_the_chosen_policy_holds() -> None:
    fitting = 0
    for answers in combinations():
        for policy in (*POLICIES, UNKNOWN):
            verdict = judge(answers | {"policy": policy})
            assert verdict.fits == (policy in able(answers)), (answers, policy)
            fitting += verdict.fits
            if not verdict.fits:
                assert verdict.reasons
            elif policy != verdict.policy:
                assert any("leaves less to chance" in caution for caution in verdict.cautions)
    assert fitting > 1000


CAUTIONS = {
    "personal": ({"personal": "yes"}, "secret"),
    "personal, not known": ({"personal": UNKNOWN}, "secret"),
    "both": ({"effect": "both"}, "rows are no part"),
    "next steps": ({"next_steps": "yes"}, "guard those too"),
    "sqlite": ({"database": "sqlite"}, "one host only"),
    "nobody": ({"person": "no"}, "waits for ever"),
    "the window is over": ({"longest_redelivery": "3 days"}, "after that the look-up decides"),
}


@pytest.mark.parametrize("name", CAUTIONS)
def test_what_holds_although_it_fits(name: str) -> None:
    changed, words = CAUTIONS[name]
    quiet = FITS | {"longest_redelivery": "10 h"}
    assert not any(words in caution for caution in judge(quiet).cautions)
    verdict = judge(quiet | changed)
    assert verdict.fits
    assert any(words in caution for caution in verdict.cautions)


def test_a_key_with_personal_data_is_declared_with_a_secret() -> None:
    assert judge(FITS).lines[0] == 'once = semel.Once("postgresql://…")'
    for answer in ("yes", UNKNOWN):
        personal = judge(FITS | {"personal": answer, "database": "mysql"})
        assert personal.lines[0] == 'once = semel.Once("mysql://…", secret=semel.Secret(…))'


def test_records_outlive_the_latest_redelivery() -> None:
    assert "keep=" not in judge(FITS).lines[1]
    assert 'keep="202 days"' in judge(FITS | {"longest_redelivery": "201 days"}).lines[1]


def test_every_reason_can_come() -> None:
    found = codes(policy="row") | codes(policy=UNKNOWN) | codes(job=UNKNOWN)
    found |= codes(provider_key="no", lookup="no", person="no", policy="hold")
    found |= {reason.code for reason in judge(ROWS | {"commits_midway": "yes"}).reasons}
    for name, answer in STOPS.values():
        found |= codes(**{name: answer})
    assert found == set(REASONS)


def test_every_reason_and_question_has_its_line() -> None:
    text = (ROOT / "docs/fit.md").read_text("utf-8")
    assert [question.id for question in QUESTIONS if f"`{question.id}`" not in text] == []
    assert [code for code in REASONS if f"`{code}`" not in text] == []


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"nothing": "yes"}, "no question"),
        ({"identifier": "perhaps"}, "no answer"),
        ({"longest_run": "soon"}, "not a duration"),
    ],
)
def test_what_is_no_answer_is_refused(answers: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check_answers(answers)


def test_answers_of_a_file_become_text() -> None:
    assert check_answers({"person": True, "staging": False, "longest_run": 45, "job": " a "}) == {
        "person": "yes",
        "staging": "no",
        "longest_run": "45",
        "job": "a",
    }
