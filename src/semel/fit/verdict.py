"""Whether a job fits, by the answers: pure. Which effect, which policy; or each reason to stop, and what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from semel.core.durations import describe, to_timedelta
from semel.fit.questions import BY_ID, QUESTIONS, UNKNOWN, is_asked
from semel.fit.reasons import REASONS
from semel.fit.writing import write_lines

Answers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why it stops: what is wrong, and what would change it."""

    code: str
    what: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``fits`` with what to declare, or the reasons to stop."""

    fits: bool
    policy: str | None
    """The one that is suggested: by the name of an effect. None where none is possible."""
    chosen: str
    lines: tuple[str, ...]
    """What to write, where it fits."""
    reasons: tuple[Reason, ...]
    cautions: tuple[str, ...]
    """What holds although it fits."""


def judge(answers: Answers) -> Verdict:
    """The verdict. What is not answered counts as what would be the worse, where that can still be safe; else it stops."""
    answers = settle_unknown(answers)
    suggested = suggest(answers)
    reasons = tuple(_reasons(answers, suggested))
    chosen = answers.get("policy", UNKNOWN)
    fits = not reasons
    return Verdict(
        fits=fits,
        policy=suggested,
        chosen=chosen,
        lines=write_lines(answers, chosen) if fits else (),
        reasons=reasons,
        cautions=tuple(_cautions(answers, suggested)) if fits else (),
    )


def settle_unknown(answers: Answers) -> dict[str, str]:
    """With the worse answer in place of one that is not known, where a question has one."""
    settled = dict(answers)
    for question in QUESTIONS:
        if question.unknown_as and settled.get(question.id, UNKNOWN) == UNKNOWN:
            settled[question.id] = question.unknown_as
    return settled


def suggest(answers: Answers) -> str | None:
    """The policy that leaves least to chance: rows, then the provider's key, a look-up, what is acceptable, a person."""
    return next(iter(possible(answers)), None)


def possible(answers: Answers) -> tuple[str, ...]:
    """Every policy that the answers allow, the best first."""
    effect = answers.get("effect")
    if effect == "rows":
        return ("row",) if _row_holds(answers) else ()
    if effect not in ("outside", "both"):
        return ()
    return tuple(_of_outside(answers))


def _row_holds(answers: Answers) -> bool:
    return answers.get("commits_midway") == "no"


def _of_outside(answers: Answers) -> Iterator[str]:
    person = answers.get("person") == "yes"
    looks = answers.get("lookup") == "yes" and _duration(answers, "lookup_settle") is not None
    if _key_covers_a_run(answers) and (looks or person):
        yield "provider_key"
    if looks:
        yield "lookup"
    accepted = [
        name
        for name, answer in (("accept_duplicate", "duplicate_ok"), ("accept_miss", "miss_ok"))
        if answers.get(answer) == "yes"
    ]
    if answers.get("undo") != "yes":  # a person rather than what cannot be undone
        yield from ["hold"] if person else []
        yield from accepted
    else:
        yield from accepted
        yield from ["hold"] if person else []


def _key_covers_a_run(answers: Answers) -> bool:
    window, run = _duration(answers, "provider_window"), _duration(answers, "longest_run")
    return answers.get("provider_key") == "yes" and window is not None and (run is None or window > run * 3)


def _duration(answers: Answers, name: str) -> timedelta | None:
    told = answers.get(name, UNKNOWN)
    return None if told == UNKNOWN else to_timedelta(told, name=name)


def _reason(code: str, *values: str) -> Reason:
    what, change = REASONS[code]
    return Reason(code, what.format(*values), change.format(*values))


def _reasons(answers: Answers, suggested: str | None) -> Iterator[Reason]:
    for question in QUESTIONS:
        if not is_asked(question, answers):
            continue
        answer = answers.get(question.id, UNKNOWN)
        code = f"{question.id}-{answer.replace('_', '-')}"
        if code in REASONS:
            yield _reason(code)
        elif answer == UNKNOWN and question.id != "policy":
            yield _reason("not-known", f"{question.text} ({question.id})")
    yield from _of_policy(answers, suggested)


def _of_policy(answers: Answers, suggested: str | None) -> Iterator[Reason]:
    chosen = answers.get("policy", UNKNOWN)
    allowed = possible(answers)
    if suggested is None and answers.get("effect") in ("outside", "both"):
        yield _reason("policy-none-possible")
    elif chosen == UNKNOWN:
        shown = "none yet, until the rest is answered" if suggested is None else suggested
        yield _reason("policy-not-chosen", shown)
    elif chosen not in allowed and allowed:
        yield _reason("policy-not-possible", chosen, ", ".join(allowed))


def _cautions(answers: Answers, suggested: str | None) -> Iterator[str]:
    chosen = answers["policy"]
    if chosen != suggested:
        yield f"{suggested} leaves less to chance than {chosen}, and is possible here."
    if answers.get("personal") == "yes":
        yield "The key holds personal data: give Once a secret (secret=semel.Secret(…)); no label is stored then."
    if answers.get("effect") == "both":
        yield (
            "The rows are no part of the call: write them so that writing them again changes nothing, after op.acting(); or "
            "let the call be a job of its own, enqueued in their transaction."
        )
    if answers.get("next_steps") == "yes":
        yield "A repeat succeeds, and starts the next steps again: guard those too."
    if answers.get("database") == "sqlite":
        yield "SQLite: one host only, and its clock is the machine's."
    if answers.get("person") != "yes" and chosen != "row":
        yield "What several attempts could not tell is held at last: without a person it waits for ever."
    if chosen == "row" and answers.get("person") != "yes":
        yield "A row that somebody commits midway is held: a person has to look then."
    window, late = _duration(answers, "provider_window"), _duration(answers, "longest_redelivery")
    if chosen == "provider_key" and window is not None and late is not None and late > window:
        then = "the look-up" if answers.get("lookup") == "yes" else "a person"
        yield (
            f"A message can come {describe(late)} later, the provider keeps its key for "
            f"{describe(window)}: after that {then} decides."
        )


def check_answers(answers: Mapping[str, object]) -> dict[str, str]:
    """Answers as text, checked by their questions. Raises ConfigurationError for what is none."""
    from semel.errors import ConfigurationError

    checked: dict[str, str] = {}
    for name, value in answers.items():
        question = BY_ID.get(name)
        if question is None:
            raise ConfigurationError(
                f"There is no question {name!r}.", remedy=f"There are: {', '.join(BY_ID)}."
            )
        text = {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
        text = text.strip() or UNKNOWN
        if question.kind == "choice" and text not in question.choices:
            raise ConfigurationError(
                f"{name} is {text!r}, which is no answer.", remedy=f"One of: {', '.join(question.choices)}."
            )
        if question.kind == "duration" and text != UNKNOWN:
            to_timedelta(text, name=name)
        checked[name] = text
    return checked
