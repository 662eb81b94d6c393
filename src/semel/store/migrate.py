"""Bringing the schema up: numbered files, with a step before the new code runs (pre) and one after it (post).

A step is one transaction, begun by an advisory lock; what is applied is read again after the lock, so that
any number of callers at once apply each step once. Old code runs on a schema whose newer pre steps are
applied, and never on one whose newer post steps are. A pre step must work where no earlier post step has run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal

import psycopg

from semel.errors import ConfigurationError, SchemaMismatch
from semel.sql import SCHEMA_VERSION, Catalogue
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.run import run
from semel.store.session import open_session
from semel.store.statement import Operation, Statement, Steps

Phase = Literal["pre", "post"]
Which = Literal["all", "pre", "post"]

_FILE = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.(?P<phase>pre|post)\.sql")
_MIGRATE = "Run: semel migrate"


@dataclass(frozen=True, slots=True)
class Step:
    """One numbered file. A version may lack either phase: then there is nothing to do in it."""

    version: int
    phase: Phase
    name: str
    raw: str
    """The file's text, with ``{schema}`` still in it."""

    @property
    def key(self) -> tuple[int, str]:
        return self.version, self.phase

    def __str__(self) -> str:
        return f"{self.version:04} {self.name} ({self.phase})"


@dataclass(frozen=True, slots=True)
class Applied:
    """One step that the database says was applied; it may be newer than this code and unknown to it."""

    version: int
    phase: str
    name: str
    applied_at: datetime

    @property
    def key(self) -> tuple[int, str]:
        return self.version, self.phase


@dataclass(frozen=True, slots=True)
class SchemaState:
    """What the database says of its schema. ``applied`` is None where semel's tables are not there at all."""

    schema: str
    applied: tuple[Applied, ...] | None

    @property
    def keys(self) -> frozenset[tuple[int, str]]:
        return frozenset(step.key for step in self.applied or ())

    @property
    def version(self) -> int:
        """The newest version whose pre step is applied; 0 where there is none."""
        return max((version for version, phase in self.keys if phase == "pre"), default=0)


def load_steps(directory: Traversable | None = None) -> tuple[Step, ...]:
    """The numbered files in the order to apply them; the package's own unless another directory is given."""
    folder = resources.files("semel.sql").joinpath("migrations") if directory is None else directory
    steps = []
    for file in folder.iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None:
            phase: Phase = "pre" if match["phase"] == "pre" else "post"
            steps.append(Step(int(match["version"]), phase, match["name"], file.read_text(encoding="utf-8")))
    steps.sort(key=lambda step: (step.version, step.phase == "post"))
    if len({step.key for step in steps}) < len(steps):
        raise ConfigurationError("Two migration files have the same number and phase.")
    return tuple(steps)


def schema_state(schema: str = "semel") -> Operation[SchemaState]:
    """What is applied. ``schema`` only names it in the answer; the session's catalogue says which is read."""

    def steps() -> Steps[SchemaState]:
        ((present,),) = yield Statement("schema/find_migrations")
        if not present:
            return SchemaState(schema, None)
        rows = yield Statement("schema/applied_steps")
        return SchemaState(schema, tuple(Applied(*row) for row in rows))

    return Operation("schema_state", steps)


def apply_step(step: Step, catalogue: Catalogue) -> Operation[bool]:
    """Apply one step, unless somebody else has meanwhile; answers whether it was applied now.

    Waits for other migrations of the schema. A crash before the commit leaves nothing of the step behind.
    """

    def steps() -> Steps[bool]:
        yield Statement("schema/lock")
        state = yield from schema_state().steps()
        if step.key in state.keys:
            return False
        yield Statement("schema/apply_step", literals={"script": catalogue.fill(step.raw)})
        yield Statement(
            "schema/record_step", {"version": step.version, "step": step.phase, "name": step.name}
        )
        return True

    return Operation("apply_step", steps)


def plan(steps: Iterable[Step], state: SchemaState, which: Which = "all") -> tuple[Step, ...]:
    """The steps still to apply, in order. Post steps whose pre step is missing are refused."""
    known = tuple(steps)
    done = state.keys
    chosen = tuple(step for step in known if step.key not in done and which in ("all", step.phase))
    if which == "post" and chosen:
        for step in known:
            if step.phase == "pre" and step.version <= chosen[-1].version and step.key not in done:
                raise SchemaMismatch(
                    f"Step {step} has not been applied to the schema {state.schema}.",
                    holds="Nothing was changed.",
                    remedy="Run: semel migrate --step pre, then start the new workers, then --step post.",
                )
    return chosen


def check_schema(
    state: SchemaState, *, steps: Iterable[Step] | None = None, version: int = SCHEMA_VERSION
) -> None:
    """Raise `SchemaMismatch` where code written for ``version`` must not run on this schema."""
    if state.applied is None:
        raise SchemaMismatch(
            f"There is no table {state.schema}.migrations: semel's tables were never made here.",
            remedy=f"{_MIGRATE} (or give the right --schema or database)",
        )
    done = state.keys
    for step in load_steps() if steps is None else steps:
        if step.phase == "pre" and step.version <= version and step.key not in done:
            raise SchemaMismatch(
                f"The schema {state.schema} is too old: step {step} is missing.", remedy=_MIGRATE
            )
    newest = max((number for number, phase in done if phase == "post"), default=0)
    if newest > version:
        raise SchemaMismatch(
            f"The schema {state.schema} is at version {newest}, too new for this code (version {version}).",
            remedy="Upgrade the package: pip install -U semel; the old code must not run on it.",
        )


def read_state(url: str, *, schema: str = "semel") -> SchemaState:
    """What is applied, read over a connection of its own."""
    with open_session(url, schema=schema, name="semel migrate") as session:
        return run(schema_state(schema), session)


def migrate_database(
    url: str,
    *,
    schema: str = "semel",
    step: Which = "all",
    dry_run: bool = False,
    directory: Traversable | None = None,
) -> list[Step]:
    """Apply what is missing, in order; answers the steps that this call applied (or, dry, would apply).

    Each step commits by itself: a failure leaves those before it applied, and calling again goes on there.
    """
    known = load_steps(directory)
    with open_session(url, schema=schema, name="semel migrate") as session:
        # What is applied must be read anew after the lock, whatever the database's default isolation is.
        session.connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        wanted = plan(known, run(schema_state(schema), session), step)
        if dry_run:
            return list(wanted)
        return [one for one in wanted if _apply(one, session)]


def _apply(step: Step, session: PsycopgSession) -> bool:
    try:
        return run(apply_step(step, session.catalogue), session)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"The database does not let this role apply {step}: {error.diag.message_primary}.",
            holds="Nothing of this step is stored.",
            remedy="Run it as the database's owner, or print the SQL for one who may: semel migration sql",
        ) from error
