"""The questions, each with why it matters and an example. An answer is one of the choices, or a duration, or a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

UNKNOWN: Final = "unknown"
"""The answer of who does not know (yet)."""

Kind = Literal["choice", "duration", "name"]
When = Mapping[str, frozenset[str]]
"""A question is asked where each of these was answered by one of those."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_ALWAYS: Final[When] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. ``choices`` map an answer to what it means."""

    id: str
    text: str
    why: str
    example: str
    kind: Kind = "choice"
    choices: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    when: When = field(default_factory=lambda: _ALWAYS)
    unknown_as: str = ""
    """What an unknown answer counts as: the worse one. Empty: nothing can be judged without it."""


def _choices(**choices: str) -> Mapping[str, str]:
    return MappingProxyType({**choices, UNKNOWN: "I do not know"})


_YES_NO: Final = _choices(yes="yes", no="no")
_OUTSIDE: Final[When] = MappingProxyType({"effect": frozenset({"outside", "both"})})
_PROVIDER: Final[When] = MappingProxyType(dict(_OUTSIDE) | {"provider_key": frozenset({"yes"})})
_LOOKUP: Final[When] = MappingProxyType(dict(_OUTSIDE) | {"lookup": frozenset({"yes"})})

QUESTIONS: Final[tuple[Question, ...]] = (
    Question(
        id="job",
        text="What is the job called?",
        why="Its job type is part of each record: it must stay the same when the function is renamed.",
        example="charge-order",
        kind="name",
    ),
    Question(
        id="identifier",
        text="What says which business operation a message is about?",
        why="Only a stable identifier tells a repeat from another operation. An id of the delivery is new each time.",
        example="The order's number is stable. A task id, a message id, a time or an attempt's number is not.",
        choices=_choices(
            stable="an identifier of the operation, known before the job is enqueued",
            delivery="only what the queue gives: a message's or task's id, a time, a number of the attempt",
            none="nothing",
        ),
    ),
    Question(
        id="key_stays",
        text="Is it the same at each retry, at each enqueue of the same operation, and after each deploy?",
        why="A key that changes on the way is another operation to every record.",
        example="No: a new UUID made in the task; a date of today, in a retry after midnight; a class name that was renamed.",
        choices=_YES_NO,
    ),
    Question(
        id="one_effect",
        text="Does one identifier mean one effect, ever?",
        why="Two operations under one key: the second is taken for a repeat, and never done.",
        example='No: one mail per customer and month under "customer". Yes: under (customer, month).',
        choices=_YES_NO,
    ),
    Question(
        id="key_plain",
        text="Is it text, a whole number, a UUID, a date, an aware time, a Decimal or an enum (or several of them)?",
        why="A float, a naive time or a blob of JSON has no one way to be written.",
        example="No: 9.9 as a float; a JSON string whose fields may change places.",
        choices=_YES_NO,
    ),
    Question(
        id="personal",
        text="Does it hold personal data, such as a phone number or an address?",
        why="Records show it as their label, and a plain hash of something short can be guessed.",
        example="Yes: the customer's e-mail address. No: the customer's number.",
        choices=_YES_NO,
        unknown_as="yes",
    ),
    Question(
        id="enqueuers",
        text="Do all who enqueue, send or call it mean the same operation by the same identifier?",
        why="One operation by two keys passes twice: the web request and the nightly catch-up both act.",
        example="No: the webhook sends the provider's event id, the script the order's number.",
        choices=_YES_NO,
    ),
    Question(
        id="database",
        text="Which relational database can hold the records, that every worker reaches?",
        why="A unique constraint that commits is the guard. A cache or a lock in memory loses it in a crash.",
        example="PostgreSQL of the application. A read replica takes no writes; SQLite serves one host.",
        choices=_choices(
            postgresql="PostgreSQL",
            mysql="MySQL or MariaDB (InnoDB)",
            sqlite="SQLite, all workers on one host",
            sqlite_shared="SQLite, workers on several hosts",
            replica="only a read replica",
            none="none: Redis, a file, memory, a document store",
        ),
    ),
    Question(
        id="effect",
        text="What does the job do to the world?",
        why="What can be rolled back needs no policy; what cannot needs one for the moment when nobody can tell.",
        example="A payment is outside. Rows in the same database are not. A mail and a row are both.",
        choices=_choices(
            rows="only rows, in the database that can hold the records, on one connection",
            outside="one call to the outside: a provider, a mail, a file, another database",
            both="rows there, and one call to the outside",
            several="several calls to the outside",
        ),
    ),
    Question(
        id="commits_midway",
        text="Does it commit on its way, before it has ended?",
        why="A crash after such a commit leaves half of the rows: the operation is held, and a person has to look.",
        example="Yes: session.commit() in a loop. No: one commit at its end.",
        choices=_YES_NO,
        when=MappingProxyType({"effect": frozenset({"rows"})}),
    ),
    Question(
        id="in_transaction",
        text="Is the job's call made while a transaction of the caller's is open?",
        why="The transaction can still roll back after the call to the outside; the guard refuses it.",
        example="Yes: charge() inside with transaction.atomic(). No: after the commit, or from a worker.",
        choices=_YES_NO,
        when=_OUTSIDE,
    ),
    Question(
        id="provider_key",
        text="Does the outside system take an idempotency key, and refuse a second call with it?",
        why="Then an uncertain call can be sent again: the provider answers what it answered.",
        example="Yes: Stripe, Adyen. No: SMTP, most SMS gateways. Some take a key and do not enforce it: that is a no.",
        choices=_YES_NO,
        when=_OUTSIDE,
        unknown_as="no",
    ),
    Question(
        id="provider_window",
        text="For how long does it keep the key?",
        why="After that the same call is a new one: it must not be sent again.",
        example="24 h (Stripe), 30 min (some banks).",
        kind="duration",
        when=_PROVIDER,
    ),
    Question(
        id="lookup",
        text="Can it be asked, by a reference of yours, whether the call took effect?",
        why="Then a stale claim can be settled without guessing.",
        example="Yes: list payments by your order's number. No: was this mail delivered?",
        choices=_YES_NO,
        when=_OUTSIDE,
        unknown_as="no",
    ),
    Question(
        id="lookup_settle",
        text='How long after a call can it still answer "not there" for one that is on its way?',
        why='A "no" that comes too early leads to a second effect.',
        example="Its time-out and the lag of its search: 2 min.",
        kind="duration",
        when=_LOOKUP,
    ),
    Question(
        id="undo",
        text="Can the effect be undone, cheaply and without anybody noticing?",
        why="What cannot be undone should rather wait for a person than be done twice.",
        example="No: money that has left. Yes: a cache that is warmed twice.",
        choices=_YES_NO,
        when=_OUTSIDE,
        unknown_as="no",
    ),
    Question(
        id="duplicate_ok",
        text="Is a rare second effect acceptable, to whoever answers for it?",
        why="Then nobody has to look, and the job acts again after a crash.",
        example="Yes: a second reminder by mail. No: a second charge.",
        choices=_YES_NO,
        when=_OUTSIDE,
        unknown_as="no",
    ),
    Question(
        id="miss_ok",
        text="Is a rare missing effect acceptable, to whoever answers for it?",
        why="Then nobody has to look, and the job is closed after a crash.",
        example="Yes: a notification that is late by tomorrow anyway. No: an invoice.",
        choices=_YES_NO,
        when=_OUTSIDE,
        unknown_as="no",
    ),
    Question(
        id="person",
        text="Is there somebody who looks at held operations and may decide about them?",
        why="What nobody can tell waits for a person. Without one it waits for ever.",
        example="The payments team, by an alert on semel operations stale.",
        choices=_YES_NO,
        unknown_as="no",
    ),
    Question(
        id="policy",
        text="Which policy was chosen for the moment when nobody can tell, by whoever answers for it?",
        why="It has to be written down before the first crash, not during it.",
        example="hold",
        choices=_choices(
            row="none is needed: only rows, one transaction",
            provider_key="send again with the same key, within the provider's window",
            lookup="ask the outside system",
            hold="hold it for a person",
            accept_duplicate="act again",
            accept_miss="leave it undone",
        ),
    ),
    Question(
        id="longest_run",
        text="How long does the longest run take?",
        why="A claim has to hold longer: else a live run is taken for dead.",
        example="Measure: p99.9 of a month, with the provider's time-out. 45 s",
        kind="duration",
    ),
    Question(
        id="longest_redelivery",
        text="How late can a message of the same operation still come?",
        why="A repeat that comes after its record is gone acts again.",
        example="SQS: 14 days, and 14 among the dead letters. Sidekiq: 21 days of retries, 180 in the dead set.",
        kind="duration",
    ),
    Question(
        id="next_steps",
        text="Does it start further steps that must not happen twice either?",
        why="A repeat succeeds, and what follows it is started again.",
        example="Yes: a chain or a chord in Celery; an enqueue at the end of the job.",
        choices=_YES_NO,
        unknown_as="yes",
    ),
    Question(
        id="staging",
        text="Can it run on staging without live calls?",
        why="The proof replays the job and kills its workers: that must not reach real customers.",
        example="A provider's sandbox, or a recording proxy in place of its host.",
        choices=_YES_NO,
    ),
)

BY_ID: Final[Mapping[str, Question]] = MappingProxyType({each.id: each for each in QUESTIONS})


def is_asked(question: Question, answers: Mapping[str, str]) -> bool:
    """Whether a question matters, given what was answered before it."""
    return all(answers.get(name) in wanted for name, wanted in question.when.items())
