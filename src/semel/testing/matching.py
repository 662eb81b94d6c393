"""Which stored jobs are those that a test means, and what to say where they are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from semel.core.arguments import Signature
from semel.core.states import Status
from semel.errors import ArgumentError, ConfigurationError, PayloadUnreadable
from semel.queue.job import BoundJob, Job
from semel.testing.jobs import JobRow, Stored

SHOWN: Final = 10
"""Jobs that a failure's message lists."""

_MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a test says of the jobs that it means."""

    kind: str | None
    signature: Signature | None
    """Known where the job itself was given: the arguments are then compared as the handler gets them."""
    arguments: Mapping[str, Any]
    columns: Mapping[str, str]
    """queue, status and unique_key, where they are said."""

    @classmethod
    def of(cls, job: Any, arguments: Mapping[str, Any], **columns: Status | str | None) -> Wanted:
        """Raises ArgumentError for an argument that the job does not have: nothing would ever match it."""
        if isinstance(job, BoundJob):
            job = job.job
        if not isinstance(job, Job | str | None):
            raise ConfigurationError(f"{job!r} is neither a job nor the name of a kind.")
        said = {name: str(value) for name, value in columns.items() if value is not None}
        if "status" in said:
            Status(said["status"])
        if not isinstance(job, Job):
            return cls(kind=job, signature=None, arguments=dict(arguments), columns=said)
        signature = job.signature
        known = (*signature.positional, *signature.keyword, *filter(None, [signature.variadic]))
        for name in arguments:
            if name not in known:
                raise ArgumentError(
                    f"{job.kind} has no argument {name!r}; it has: {', '.join(known) or 'none'}.",
                    argument=name,
                )
        return cls(kind=job.kind, signature=signature, arguments=dict(arguments), columns=said)

    def split(self, stored: Stored) -> tuple[list[JobRow], list[JobRow]]:
        """The jobs that are meant, and the rest."""
        found = [row for row in stored.jobs if not self.differences(row)]
        rest = [row for row in stored.jobs if self.differences(row)]
        return found, [*rest, *stored.others]

    def differences(self, row: JobRow) -> list[str]:
        """In words; none where this is a job that is meant."""
        return list(self._differences(row))

    def _differences(self, row: JobRow) -> Iterator[str]:
        if self.kind is not None and row.kind != self.kind:
            yield f"kind is {row.kind}"
        for name, value in self.columns.items():
            if getattr(row, name) != value:
                yield f"{name} is {getattr(row, name)}"
        if not self.arguments:
            return
        decoded = self._decoded(row)
        for name, value in self.arguments.items():
            stored, given = row.payload.get(name, _MISSING), decoded.get(name, _MISSING)
            if given is _MISSING and stored is _MISSING:
                yield f"no {name}"
            elif not (_equal(given, value) or _equal(stored, value) or _equal(stored, _as_json(value))):
                yield f"{name} is {(stored if given is _MISSING else given)!r}"

    def _decoded(self, row: JobRow) -> dict[str, Any]:
        """The arguments as the handler gets them, with its defaults; none where they cannot be read."""
        signature = self.signature
        if signature is None or row.kind != self.kind:
            return {}
        try:
            args, kwargs = signature.decode(row.raw)
        except PayloadUnreadable:
            return {}
        values = dict(zip(signature.positional, args, strict=False)) | kwargs
        if signature.variadic is not None:
            values[signature.variadic] = list(args[len(signature.positional) :])
        return values

    def __str__(self) -> str:
        parts = [self.kind or "any kind"]
        if self.arguments:
            parts.append(f"with {dict(self.arguments)!r}")
        parts += [f"{name}={value}" for name, value in self.columns.items()]
        return " ".join(parts)


def shortfall(wanted: Wanted, count: int | None, found: Sequence[JobRow], rest: Sequence[JobRow]) -> str:
    """Why the assertion fails, with what is stored, near misses first; empty where it holds."""
    if len(found) == count or (count is None and found):
        return ""
    expected = "At least one job" if count is None else f"{count} job{'' if count == 1 else 's'}"
    lines = [f"{expected} expected: {wanted}; {len(found) or 'none'} found."]
    if found:
        lines += ["Found:", *_listed([str(row) for row in found])]
    if not found or (count is not None and len(found) < count):
        nearest = sorted(
            rest, key=lambda row: (row.kind != wanted.kind, len(wanted.differences(row)), row.id)
        )
        shown = [f"{row} ({', '.join(wanted.differences(row))})" for row in nearest]
        lines += ["Stored, the nearest first:", *_listed(shown)] if shown else ["Nothing else is stored."]
    return "\n".join(lines)


def refusal(wanted: Wanted, found: Sequence[JobRow]) -> str:
    """Why `refute_enqueued` fails."""
    return "\n".join(
        [f"No job expected: {wanted}; {len(found)} found.", *_listed([str(row) for row in found])]
    )


def _listed(lines: Sequence[str]) -> list[str]:
    shown = [f"  {line}" for line in lines[:SHOWN]]
    return [*shown, f"  … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else shown


def _equal(left: Any, right: Any) -> bool:
    """``right`` may be a matcher, such as ``unittest.mock.ANY``. True is no 1 here."""
    if left is _MISSING or (isinstance(left, bool) is not isinstance(right, bool) and isinstance(right, int)):
        return False
    return bool(left == right)


def _as_json(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError, RecursionError):
        return _MISSING
