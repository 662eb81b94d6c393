"""What guards a job: read from its declaration where it is semel's, else as the description says."""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec

from semel.core.durations import to_timedelta
from semel.errors import ConfigurationError
from semel.replay.aside import Aside, AsideFailed
from semel.replay.description import Description, GuardPlace, Message
from semel.replay.expectations import ONCE, Policy
from semel.replay.results import Record
from semel.replay.ways.way import Surroundings

_ONCE_WORDS = "One effect in the end, whatever happened: what a job without a stated policy is held to."
_COLUMNS: Final = ("scope", "job_type", "key")
"""What is unique in semel's table."""


class NoGuard:
    """Nothing, or a guard that replay can only look at from outside."""

    def __init__(self, description: Description) -> None:
        given = description.guard
        self.policy = Policy(
            given.policy or ONCE, _ONCE_WORDS if given.policy in (None, ONCE) else given.policy
        )
        self.lease = (
            None if given.lease is None else to_timedelta(given.lease, name="guard.lease").total_seconds()
        )
        self.database = given.database
        self.table = given.table
        self.columns = tuple(given.columns)
        self.is_semels = set(given.columns) == set(_COLUMNS) and (given.table or "").endswith("operations")
        """Whether it is by its table: the guard in Ruby, which can be blinded, and asked nothing."""

    def record(self, message: Message) -> Record | None:
        """None: it has no records that replay knows."""
        return None

    def others(self) -> list[str]:
        """Traffic of others in its database: nothing is known of it."""
        return []

    def redo(self, message: Message) -> bool:
        """Nobody decides about what has no records."""
        return False

    def end_lease(self, message: Message) -> bool:
        """Whether the claim is an old one now; else its lease has to be waited for."""
        return False

    def close(self) -> None:
        """Nothing is open."""


class SemelGuard:
    """semel's guard, asked in a process among the user's code."""

    def __init__(self, operation: str, plain: Surroundings, database: str | None = None) -> None:
        """``database`` is where its records are, for a guard over an engine or a pool, which has no address to tell."""
        self._code = Aside(
            "semel.replay.inside.guard",
            [operation],
            code=plain.code,
            environment=plain.environment,
            log=plain.directory / f"guard-{secrets.token_hex(3)}.log",
        )
        told: dict[str, Any] = self._code.ask("describe")
        self.policy = Policy(
            told["policy"],
            told["words"],
            extra=told["extra"],
            explicit=told["explicit"],
            recorded=True,
            decidable=told["is_sync"],
        )
        self.lease: float | None = told["lease"]
        self.database: str | None = told["target"] or database
        self.schema = str(told["schema"])
        postgresql = told["dialect"] == "postgresql"
        self.table: str | None = f"{self.schema}.operations" if postgresql else "semel_operations"
        self.columns: tuple[str, ...] = _COLUMNS

    def record(self, message: Message) -> Record | None:
        return Record(**self._code.ask("record", message=dict(message)))

    def others(self) -> list[str]:
        """Claims of others that are alive now, in words; none where the records cannot be read: the checks will say so."""
        try:
            return [f"{each} in the guard's database" for each in self._code.ask("others")]
        except AsideFailed:
            return []

    def redo(self, message: Message) -> bool:
        return bool(self._code.ask("redo", message=dict(message)))

    def end_lease(self, message: Message) -> bool:
        self._code.ask("end_lease", message=dict(message))
        return True

    def close(self) -> None:
        self._code.close()


def find_guard(description: Description, plain: Surroundings, *, newest: bool) -> NoGuard | SemelGuard:
    """The job's guard; in older code there may be none yet. Raises ConfigurationError and WorkerDidNotStart."""
    if description.guard.operation is None:
        return NoGuard(description)
    try:
        return SemelGuard(description.guard.operation, plain, description.guard.database)
    except AsideFailed as failed:
        if newest:
            raise ConfigurationError(
                f"{description.guard.operation} could not be read: {failed}.",
                holds="Nothing was sent.",
                remedy="Is guard.operation a guarded function, and the environment complete? Code without a guard is "
                "replayed without [guard], and with [control] none, or as the older --code beside the newer.",
            ) from failed
        return NoGuard(msgspec.structs.replace(description, guard=GuardPlace()))
