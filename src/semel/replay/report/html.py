"""A run as one page that stands for itself: it needs no script and fetches nothing, and prints on A4."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import UTC
from importlib.resources import files
from typing import Any

from semel.replay.report.events import trouble_of
from semel.replay.report.markup import Markup, facts, join, table, tag
from semel.replay.report.wording import (
    NONE,
    counted_words,
    expected_words,
    lease_words,
    outcome,
    record_words,
    records_counted,
    seconds,
    shows_trouble,
    verdict_word,
)
from semel.replay.results import CheckResult, CodeRun, Run, Verdict


def as_html(run: Run, *, machine: str | None = None) -> str:
    """The page. ``machine`` is where it ran; by default this one."""
    styles = files("semel.replay.report").joinpath("page.css").read_text("utf-8")
    body = join(
        [
            _head(run),
            _about(run, machine or _machine()),
            _policy(run),
            *(_code(each, run) for each in run.runs),
            _legend(),
            _signatures(),
            *_troubles(run),
        ]
    )
    head = join(
        [
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            tag("title", f"Replay of {run.name}: {'holds' if run.holds else 'does not hold'}"),
            Markup(f"<style>{styles}</style>"),
        ]
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', tag('main', body)), lang='en')}\n"


def _head(run: Run) -> Markup:
    mark = "holds" if run.holds else "fails"
    return tag(
        "header",
        tag("p", "Replay report", class_="kind"),
        tag("h1", run.name),
        tag("p", tag("strong", outcome(run)), class_=f"outcome {mark}"),
        tag(
            "p",
            "The job's messages were delivered again, two at once, and its workers were killed, on a staging system. "
            "Each time it was counted how often the effect happened, and held against what had been written down before.",
        ),
    )


def _about(run: Run, machine: str) -> Markup:
    ended = run.began + run.took
    return tag(
        "section",
        tag("h2", "What was run"),
        facts(
            [
                ("Job", run.name),
                *((f"Code {each.label}".strip(), each.code) for each in run.runs),
                (
                    "When",
                    f"{run.began.astimezone(UTC):%Y-%m-%d %H:%M:%S} to {ended.astimezone(UTC):%H:%M:%S} UTC "
                    f"({seconds(run.took.total_seconds())})",
                ),
                ("Machine", machine),
                (
                    "Versions",
                    ", ".join(f"{name} {version}" for name, version in run.versions.items()) or NONE,
                ),
                ("Seed", run.seed),
            ]
        ),
    )


def _policy(run: Run) -> Markup:
    return tag(
        "section",
        tag("h2", "What the job promises"),
        tag("blockquote", run.policy),
        tag("p", "Written down, with what each check must come to, before the first delivery:"),
        tag("p", tag("code", run.expectations), class_="file"),
    )


def _code(each: CodeRun, run: Run) -> Markup:
    title = f"Code {each.label}" if each.label else "Checks"
    rows = (_row(check) for check in each.checks)
    headings = ("Check", "Expected", "Counted", "Records", "Oldest claim", "Took", "Verdict")
    return tag(
        "section",
        tag("h2", title),
        tag("p", each.code, class_="file") if len(run.runs) > 1 else "",
        table(headings, rows, class_="checks"),
        tag("h3", "Where the guard is"),
        facts(_guard(each.guard)) if each.guard else tag("p", "No guard was named: none was looked for."),
    )


def _row(check: CheckResult) -> Iterator[Markup]:
    evidence = check.evidence
    skipped = check.verdict is Verdict.SKIPPED
    why = tag("ul", *(tag("li", reason) for reason in check.reasons)) if check.reasons else ""
    yield tag("td", tag("b", check.name), tag("div", check.title), why, _beside(check), class_="what")
    yield tag("td", expected_words(check.expected))
    yield tag("td", NONE if skipped else counted_words(evidence))
    yield tag(
        "td", f"{records_counted(evidence)} each: {record_words(evidence)}" if evidence.records else NONE
    )
    yield tag("td", lease_words(evidence))
    yield tag("td", NONE if skipped else seconds(check.seconds), class_="number")
    yield tag("td", tag("span", verdict_word(check.verdict), class_=f"verdict {check.verdict.value}"))


def _beside(check: CheckResult) -> Markup:
    """What else was seen, in small letters."""
    evidence = check.evidence
    if check.verdict is Verdict.SKIPPED:
        return Markup("")
    parts = [
        f"deliveries begun: {evidence.begins}, calls entered: {evidence.entries}, returned: {evidence.returns}"
    ]
    if evidence.overlapping is not None:
        rounds = check.expected.rounds if check.expected else evidence.overlapping
        parts.append(f"{evidence.overlapping} of {rounds} rounds overlapped")
    if evidence.processes:
        parts.append(f"in {evidence.processes} process{'' if evidence.processes == 1 else 'es'}")
    if evidence.killed_at:
        exits = ", ".join(dict.fromkeys(map(str, evidence.exits)))
        parts.append(
            f"killed at {', '.join(dict.fromkeys(evidence.killed_at))}"
            + (f" (exit {exits})" if exits else "")
        )
    if evidence.midway is not None:
        parts.append(f"the record inside the effect: {evidence.midway}")
    if evidence.answer is not None:
        parts.append(f"the delivery ended: {evidence.answer}")
    if evidence.redelivered_by:
        parts.append(f"delivered again by {evidence.redelivered_by}")
    if evidence.control is not None:
        parts.append(f"without the guard: {evidence.control} effects")
    elif evidence.control_refused:
        parts.append(f"no control: {evidence.control_refused}")
    return tag("div", "; ".join([*parts, *evidence.notes]) + ".", class_="beside")


def _guard(guard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in guard.items():
        yield name.replace("_", " ").capitalize(), _words(value)


def _words(value: Any) -> str:
    match value:
        case True | False:
            return "yes" if value else "no"
        case None:
            return NONE
        case list() | tuple():
            return ", ".join(map(_words, value)) or NONE
        case dict():
            return "; ".join(f"{name}: {_words(each)}" for name, each in value.items())
        case _:
            return str(value)


def _troubles(run: Run) -> Iterator[Markup]:
    """What happened in the checks that do not hold."""
    for each in run.runs:
        for check in each.checks:
            if shows_trouble(check):
                yield trouble_of(check, each.label)


def _legend() -> Markup:
    words = (
        (
            "✓ holds",
            "what was counted is what was expected, and the same check repeats the effect without the guard",
        ),
        ("✗ fails", "an operation had more or fewer effects than it may have, or its record says otherwise"),
        ("○ vacuous", "nothing was shown: the check could not have failed. It counts against the run"),
        ("– skipped", "it does not apply to this job, for the reason given before the run"),
        (
            "maybe",
            "the call was entered and did not return: nobody can tell from here whether it had its effect",
        ),
    )
    return tag("section", tag("h2", "Words"), facts(words), class_="legend")


def _signatures() -> Markup:
    lines = (
        tag("tr", *(tag("td", tag("span", what)) for what in (who, "Date", "Signature")))
        for who in ("Run by", "Reviewed by", "Accepted by")
    )
    return tag(
        "section",
        tag("h2", "Signed"),
        tag("table", tag("tbody", *lines), class_="signatures"),
        class_="whole",
    )


def _machine() -> str:
    return f"{platform.node()}, {platform.system()} {platform.machine()}, {os.cpu_count()} processors"
