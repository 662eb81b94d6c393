"""A person decides about two held orders: the commands that anybody would give, and what comes of them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from semel.cli.demonstration.charges.figures import DecisionFigures, list_records
from semel.cli.demonstration.promises import PromiseBroken
from semel.core.operation_report import OperationSummary
from semel.core.operations import State
from semel.core.people import Act
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.guard_views import find_operation
from semel.store.run import run

_SEMEL: Final = (sys.executable, "-m", "semel.cli")
_SECONDS: Final = 60
REASONS: Final = ((Act.DONE, "the provider has this charge"), (Act.REDO, "the provider has no such charge"))


@dataclass(frozen=True)
class Person:
    """Looks each held order's reference up at the provider, and says what happened."""

    session: PsycopgSession
    url: str
    charges_of: Callable[[int], int]
    find_charges: Callable[[str], list[Any]]
    """The provider's charges with a reference."""
    say: Callable[[str], None]
    settled: Callable[[int], str | None]
    """Waits for an order's job to end; answers its status."""

    def decide(self, job_type: str) -> list[DecisionFigures]:
        """About one held order that was charged and one that was not."""
        held = list_records(self.session, states=frozenset({State.HELD}), job_type=job_type)
        figures = []
        for act, reason in REASONS:
            charged = act is Act.DONE
            for order, record in sorted(held.items()):
                if bool(self.find_charges(record.reference)) is charged:
                    figures.append(self._decide(act, reason, order, record))
                    break
        return figures

    def _decide(self, act: Act, reason: str, order: int, record: OperationSummary) -> DecisionFigures:
        before = self.charges_of(order)
        words = ["held", act.value, str(record.id), "--claim", str(record.claim)]
        words += ["--revision", str(record.revision), "--reason", reason]
        command = shlex.join(["semel", *words])
        self.say(f"order {order} is held, its reference is in {before} of the provider's charges: {command}")
        given = subprocess.run(  # noqa: S603
            [*_SEMEL, *words, "--who", "demo", "--database", self.url, "--json"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if given.returncode != 0:
            raise PromiseBroken(f"{command} failed.", remedy=given.stderr.strip())
        status = self.settled(order)
        found = run(find_operation(record.id), self.session)
        assert found is not None
        after = self.charges_of(order)
        self.say(
            f"order {order}: {found.operation.state} ({found.operation.outcome}), {after} charge, job {status}"
        )
        return DecisionFigures(
            act=act.value,
            command=command,
            order=order,
            operation=record.id,
            charges_before=before,
            charges_after=after,
            state=found.operation.state,
            outcome=found.operation.outcome,
            job_status=status,
        )
