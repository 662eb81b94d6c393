"""What the guard asks of the record and what it gets: one attempt's request, and a row of a read as the record."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from semel.core.effects import Effect
from semel.core.operations import Limits, Outcome, Record, Reply, State
from semel.errors import KeyRefused
from semel.store.statement import Row, Statement

LONGEST_NAME: Final = 255
"""Characters of a scope or a job type: what an index of every database takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One attempt at an operation: which one, with what, and under which policy."""

    scope: str
    job_type: str
    key: str
    """64 hexadecimal digits."""
    token: str
    """New for each attempt, chosen before the insert: a row with it is mine, whatever became of the answer."""
    reference: str
    """For an operation that has none yet, or needs a new one."""
    effect: Effect
    lease: timedelta
    longest_run: timedelta
    limits: Limits = field(default_factory=Limits)
    fingerprint: str | None = None
    label: str | None = None
    key_version: int = 0
    acts_from_start: bool = True
    message: str | None = None
    """JSON: how to send the message again; None where it is not to be kept."""
    dialect: str = "postgresql"
    """Of the database that has the record: "postgresql", "mysql" or "sqlite"."""

    def __post_init__(self) -> None:
        for name in ("scope", "job_type"):
            if len(getattr(self, name)) > LONGEST_NAME:
                raise KeyRefused(
                    f"The operation's {name} has more than {LONGEST_NAME} characters.", remedy="Shorten it."
                )
            if "\0" in getattr(self, name):
                raise KeyRefused(
                    f"The operation's {name} has a NUL character, which PostgreSQL does not store.",
                    remedy="Leave it out.",
                )

    @property
    def mark(self) -> str:
        """The savepoint that marks the transaction of this attempt, where the database has no number for it."""
        return f"semel_{sha256(self.token.encode()).hexdigest()[:24]}"

    @property
    def identity(self) -> dict[str, Any]:
        return {"scope": self.scope, "job_type": self.job_type, "key": self.key}

    @property
    def reading(self) -> dict[str, Any]:
        return self.identity | {"token": self.token, "fingerprint": self.fingerprint}

    @property
    def parameters(self) -> dict[str, Any]:
        return self.identity | {
            "token": self.token,
            "reference": self.reference,
            "lease": self.lease.total_seconds(),
            "fingerprint": self.fingerprint,
            "label": self.label,
            "key_version": self.key_version,
            "acting": self.acts_from_start,
            "effect": self.effect.name,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The guard's answer to a delivery."""

    reply: Reply
    claim: int = 0
    reference: str = ""
    acting: bool = False
    """Whether the point of no return counts as passed already."""
    record: Record | None = None
    """What was read; None for a first claim."""
    reason: str = ""
    wait: timedelta | None = None
    unwritten: bool = False
    """The answer is a move to ``held`` that is still to be written, apart from the transaction that asks."""
    in_doubt: bool = False
    """Whether an earlier attempt may have acted, and this one acts in spite of it."""


@dataclass(frozen=True, slots=True)
class Again:
    """The record changed in between: decide anew."""


@dataclass(frozen=True, slots=True)
class Written:
    """A fenced write went through, now or before its acknowledgement was lost."""

    late: str | None = None
    """``late`` or ``late_finish``, where a completion came after its lease."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A fenced write changed nothing: the claim is somebody else's, or the record is gone."""

    record: Record | None


def record_of(row: Row) -> Record:
    """A row of ``read`` or ``read_locked``, whose columns are the same in every dialect."""
    mine = bool(row[4])
    return Record(
        state=State(text_of(row[0])),
        outcome=None if row[1] is None else Outcome(text_of(row[1])),
        revision=int(row[2]),
        claim=int(row[3]),
        mine=mine,
        same_payload=bool(row[5]),
        lease_left=float(row[6]),
        acting=bool(row[7]),
        unsure_for=None if row[8] is None else float(row[8]),
        reference=text_of(row[9]),
        generation=int(row[10]),
        reference_age=float(row[11]),
        unsure=int(row[12]),
        takeovers=int(row[13]),
        looks=int(row[14]),
        extra_used=int(row[15]),
        committed_midway=row[16] is not None and not mine,
        result=None if row[17] is None else json.loads(row[17]),
        result_dropped=bool(row[18]),
        last_error=None if row[19] is None else text_of(row[19]),
        message_kept=bool(row[20]),
    )


def text_of(value: str | bytes) -> str:
    """A MySQL driver's connection may be set to give bytes for text."""
    return value.decode() if isinstance(value, bytes) else value


def event(
    request: Request,
    name: str,
    claim: int,
    *,
    why: str | None = None,
    who: str | None = None,
    detail: dict[str, Any] | None = None,
) -> Statement:
    """A line of the operation's history, in the transaction of the move it tells of."""
    told = None if detail is None else json.dumps(detail)
    return Statement(
        "guard/event",
        request.identity | {"event": name, "claim": claim, "who": who, "why": why, "detail": told},
    )
