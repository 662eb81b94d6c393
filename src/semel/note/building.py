"""Puts a note together: the sections, in the order that somebody asks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from semel.core.durations import describe, to_timedelta
from semel.core.effects import AcceptDuplicate, AcceptMiss, Lookup, ProviderKey, Row, promise
from semel.doctor.application_reading import key_fields
from semel.doctor.finding import Finding
from semel.guard.guarded import Guarded
from semel.note import crashes, reverting
from semel.note.example import DIGITS, Example, work_out
from semel.note.measured import Measurement, describe_measurement
from semel.note.origin import Origin
from semel.note.page import Block, Items, Page, Paragraph, Section, Table, code
from semel.note.retention import Retention, propose
from semel.note.risks import find_risks
from semel.note.ways import Kind, Subject

_DATABASES: Final = MappingProxyType(
    {"postgresql": "PostgreSQL", "mysql": "MySQL or MariaDB", "sqlite": "SQLite"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is not in the code."""

    measurement: Measurement
    findings: Sequence[Finding] = ()
    """Doctor's, as far as code decides them."""


def build(subject: Subject, origin: Origin, told: Told) -> Page:
    """The page. Raises ConfigurationError where the example is no call of the function."""
    guarded = subject.guarded
    declaration = guarded.declaration
    example = work_out(guarded, origin.example)
    late = (
        None
        if origin.longest_redelivery is None
        else to_timedelta(origin.longest_redelivery, name="--longest-redelivery")
    )
    retention = propose(subject.ways, keep=declaration.keep, lease=declaration.lease, told=late)
    return Page(
        title=f"{code(declaration.job_type)}: one operation, once",
        origin=origin.to_line(),
        sections=(
            Section("What this is", _intro(subject, origin)),
            Section("The operation", _operation(guarded, example)),
            Section("What counts as a repeat", _repeat(guarded)),
            Section("All ways in", _ways(subject)),
            Section("Lease", _lease(guarded, told.measurement)),
            Section("Effect and policy", _effect(guarded)),
            Section("Retention", _retention(declaration.keep, retention)),
            Section("Risks", (Items(find_risks(subject, retention, told.findings)),)),
            Section(
                "How to revert",
                (Items(reverting.steps(subject, _keep_until(subject, retention)), numbered=True),),
            ),
        ),
    )


def _keep_until(subject: Subject, retention: Retention) -> timedelta | None:
    """Where something is not known, at least as long as records are kept anyway."""
    if retention.proposed is None or not retention.unknown:
        return retention.proposed
    return max(retention.proposed, subject.guarded.declaration.keep)


def _intro(subject: Subject, origin: Origin) -> tuple[Block, ...]:
    doc = (inspect.getdoc(subject.guarded.function) or "").partition("\n")[0].rstrip(".")
    about = f" Its own words: {code(doc)}." if doc else ""
    return (
        Paragraph(
            f"{code(subject.name)} is guarded: one record per operation in "
            f"{_database(subject.guarded)}, kept one by a unique "
            f"constraint, decides what each further delivery does.{about}"
        ),
        Paragraph(
            f"Written from the code by {code(origin.command())}. Not to be edited: change the code, and write it anew."
        ),
    )


def _database(guarded: Guarded[..., Any]) -> str:
    return _DATABASES[guarded.place.dialect]


def _operation(guarded: Guarded[..., Any], example: Example | None) -> tuple[Block, ...]:
    declaration = guarded.declaration
    fields = ", ".join(code(name) for name in key_fields(declaration.key)) or "nothing that a caller passes"
    how = f"computed by a function of {fields}" if callable(declaration.key) else f"made of {fields}"
    secret = (
        ", as an HMAC with a secret: neither its text nor a label is stored"
        if declaration.secret is not None
        else ""
    )
    scope = (
        "computed per call"
        if callable(declaration.scope)
        else code(declaration.scope)
        if declaration.scope
        else "none"
    )
    first = Paragraph(
        f"The key is {how}{secret}. Job type {code(declaration.job_type)}, scope {scope}; the three are unique together."
    )
    if example is None:
        return (
            first,
            Paragraph(
                "No worked example: the annotations do not tell what a call looks like. Give one by --example."
            ),
        )
    rows = [
        ("a call with", code(example.arguments)),
        ("is the key", code(example.text) if example.text else "not shown: it is made with a secret"),
    ]
    if example.digest:
        rows.append(("stored as SHA-256", f"{code(example.digest)} … (the first {DIGITS} of 64 digits)"))
    rows.append(("label, for people", code(example.label) if example.label else "none"))
    if callable(declaration.scope):
        rows.append(("scope", code(example.scope)))
    if example.fingerprint:
        rows.append(("fingerprint", f"{code(example.fingerprint)} …"))
    return (first, Table(("worked example", ""), tuple(rows)))


def _repeat(guarded: Guarded[..., Any]) -> tuple[Block, ...]:
    declaration = guarded.declaration
    keyed = set(key_fields(declaration.key))
    rows = []
    for name in guarded.signature.parameters:
        if name in keyed:
            role = "in the key: another value is another operation"
        elif declaration.payload is None:
            role = "in the fingerprint where it differs from its default: another value under the same key is refused"
        elif name in declaration.payload:
            role = "in the fingerprint: another value under the same key is refused"
        else:
            role = "ignored: the first delivery's value counts"
        rows.append((code(name), role))
    compared = declaration.payload != ()
    items = [
        "A repeat: the same key, after the operation completed. It does not act; it returns the stored result"
        + ("." if declaration.store_result else ": none is stored, so it returns nothing."),
        "Not a repeat: another key. Nothing else tells two operations apart; neither message id, nor attempt, nor time.",
    ]
    if compared:
        items.append(
            "Neither: the same key with another payload. PayloadMismatch; it neither acts nor is taken for a repeat."
        )
    else:
        items.append(
            "Nothing of the payload is compared: the same key with other contents is taken for a repeat."
        )
    return (Table(("argument", "counts as"), tuple(rows)), Items(tuple(items)))


def _ways(subject: Subject) -> tuple[Block, ...]:
    declaration = subject.guarded.declaration
    unseen = [
        "code elsewhere that calls, enqueues or sends it: any program that can insert a job or publish a message is a way in",
        f"a Sidekiq class with {code(f'semel_once {declaration.job_type!r}')}, or another "
        "application with the same job type and scope: "
        "its records are the same, its key must be too",
    ]
    if not any(way.kind is Kind.SQS for way in subject.ways):
        unseen.append("a Lambda function or a receive loop of your own that hands it messages")
    shared = [f"also declared with this job type: {code(name)}" for name in subject.shared_with]
    return (
        Paragraph("Seen in the code:"),
        Items((*(way.text for way in subject.ways), *shared)),
        Paragraph("Not seen from here:"),
        Items(tuple(unseen)),
    )


def _lease(guarded: Guarded[..., Any], measurement: Measurement) -> tuple[Block, ...]:
    declaration = guarded.declaration
    if isinstance(declaration.effect, Row):
        return (
            Paragraph(
                "The claim is part of the function's own transaction: it holds as long as that is open, and no lease counts."
            ),
            describe_measurement(declaration, measurement),
        )
    extended = (
        f"extended while the function runs, up to its longest run of {describe(declaration.longest_run)}"
        if declaration.extend
        else f"not extended; it has to cover the declared longest run of {describe(declaration.longest_run)}"
    )
    return (
        Paragraph(
            f"A claim holds for {describe(declaration.lease)}, on the database's clock; {extended}. "
            "Until it is over every other "
            "delivery is told that the operation is in progress. A worker that is paused past it, "
            "and wakes inside its outside call, can still act."
        ),
        describe_measurement(declaration, measurement),
    )


def _effect(guarded: Guarded[..., Any]) -> tuple[Block, ...]:
    declaration = guarded.declaration
    promised = promise(declaration.effect)
    explicit = declaration.acting == "explicit"
    rows = tuple(
        (each.point, each.leads_to, each.twice, each.missing, each.decides)
        for each in crashes.crash_points(
            declaration.effect, explicit=explicit, stores=declaration.store_result
        )
    )
    return (
        Paragraph(
            f"Declared effect: {code(_shown(declaration.effect))}. It never acts more than "
            f"{_times(promised.never_more_than)}; completed means {promised.completed_means}. "
            f"Held after {declaration.limits.max_unsure} attempts that nobody can tell about, or "
            f"{declaration.limits.max_takeovers} takeovers."
        ),
        Table(("the worker dies", "then", "twice?", "not at all?", "who decides"), rows),
    )


def _times(count: str) -> str:
    return "once" if count == "1" else f"{count} times"


def _shown(effect: Any) -> str:
    match effect:
        case ProviderKey(window=window, then=then):
            return f"ProviderKey(valid_for={describe(window)!r}, then={_shown(then)})"
        case Lookup(settle=settle):
            return f"Lookup(settle={describe(to_timedelta(settle, name='settle'))!r})"
        case AcceptDuplicate(extra=extra):
            return f"AcceptDuplicate(extra={extra})"
        case AcceptMiss():
            return "AcceptMiss()"
    return f"{type(effect).__name__}()"


def _retention(keep: timedelta, retention: Retention) -> tuple[Block, ...]:
    found: list[str] = [
        f"kept now: {describe(keep)} after completion; claimed and held operations are kept without end"
    ]
    found += [f"latest redelivery, {text}" for text in retention.inputs]
    found += [f"not known from the code: {text}" for text in retention.unknown]
    if retention.proposed is None:
        found.append(
            "proposed: nothing, since no way in says how late a message can come; say it by --longest-redelivery"
        )
    else:
        verdict = "what is kept now covers it" if retention.enough else "what is kept now does not cover it"
        least = "at least " if retention.unknown else ""
        found.append(
            f"proposed: {least}{describe(retention.proposed)} (the latest redelivery that is known, the lease and a day); "
            f"{verdict}" + (", as far as it is known" if retention.unknown else "")
        )
    found.append("a repeat that comes after the record is gone acts again; this note deletes nothing")
    return (Items(tuple(found)),)
