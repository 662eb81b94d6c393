"""One version of the code under replay: every check with the guard, without it, and without its constraint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from semel.errors import ConfigurationError
from semel.replay.bench import Bench, Mode
from semel.replay.checks import Check, checks_for
from semel.replay.code import Code
from semel.replay.constraint import CONSTRAINT_CHECKS, constraint_checks
from semel.replay.control import NotReached
from semel.replay.description import Description
from semel.replay.expectations import expected
from semel.replay.ground import Ground
from semel.replay.guards import NoGuard, SemelGuard
from semel.replay.judging import judge
from semel.replay.options import Options, Progress, Tell
from semel.replay.results import CheckResult, CodeRun, Evidence, Expected, Verdict
from semel.replay.scenarios import SCENARIOS
from semel.replay.steps import Trial

_CONTROL_ROUNDS: Final = 3


class Version:
    """One version of the code: its guard, its way, and a bench for each mode."""

    def __init__(self, code: Code, options: Options, ground: Ground, make: Callable[[Mode], Bench]) -> None:
        self.description = ground.description
        self.code = code
        self.guard = ground.guard
        self.checks = checks_for(ground.description, ground.guard.policy, ground.way.victims)
        self._has_children = "child" in ground.way.victims
        self._options = options
        self._make = make

    def choose(self, only: tuple[str, ...]) -> None:
        """Keep the checks that are wanted. Raises ConfigurationError for one that is not there."""
        names = [*(check.name for check in self.checks), *CONSTRAINT_CHECKS]
        for each in only:
            if not any(name.startswith(each) for name in names):
                raise ConfigurationError(
                    f"There is no check {each!r}.", remedy=f"There are: {', '.join(names)}."
                )
        if only:
            self.checks = [check for check in self.checks if check.name.startswith(only)]

    def try_workers(self, *, keep: bool) -> None:
        """Start one, and one of a control of its own: what does not start would be vacuous in each check.

        With ``keep`` the first check finds it there. Raises WorkerDidNotStart.
        """
        self._guarded.workers(1)
        if not keep:
            self._guarded.stop_workers()
        mode = control_mode(self.description, self.guard)
        if mode is not None and self.description.control.deliver is not None:
            bench = self._make(mode)
            bench.workers(1)
            bench.stop_workers()

    @cached_property
    def _guarded(self) -> Bench:
        return self._make(Mode("guarded"))

    def expectations(self) -> list[Expected]:
        """What each check must come to."""
        return [self._expected(check) for check in self.checks if check.skipped is None]

    def run(self, tell: Tell) -> CodeRun:
        """Do all checks: with the guard, then without it; then judge."""
        todo = [check for check in self.checks if check.skipped is None]
        evidence: dict[str, Evidence] = {}
        took: dict[str, float] = {}
        bench = self._guarded
        for check in todo:
            clock = time.monotonic()
            evidence[check.name] = self._try(bench, check, self._expected(check), tell)
            took[check.name] = time.monotonic() - clock
        bench.stop_workers()
        self._controls(todo, evidence, tell)
        results = [self._result(check, evidence, took) for check in self.checks]
        facts: dict[str, Any] = {"processes": max((each.processes for each in evidence.values()), default=0)}
        wanted = any(name.startswith(self._options.only or "") for name in CONSTRAINT_CHECKS)
        if self._options.constraint and wanted:
            results += constraint_checks(self.guard, self._without_constraint(tell), facts)
        return CodeRun(label=self.code.label, code=self.code.shown, checks=tuple(results), guard=facts)

    def _without_constraint(self, tell: Tell) -> Callable[[], tuple[Expected, Evidence]]:
        def run() -> tuple[Expected, Evidence]:
            check = Check("without-constraint", "", "two-at-once")
            wanted = expected("two-at-once", self.guard.policy, rounds=_CONTROL_ROUNDS)
            bench = self._make(Mode("unconstrained", unconstrained=True))
            try:
                return wanted, self._try(bench, check, wanted, tell)
            finally:
                bench.stop_workers()

        return run

    def _controls(self, todo: list[Check], evidence: dict[str, Evidence], tell: Tell) -> None:
        """The same without the guard. An effect that was seen twice with it needs no control."""
        mode = control_mode(self.description, self.guard)
        if mode is None:
            refused = self.description.control.none
            for each in evidence.values():
                each.control_refused = refused
            return
        bench = self._make(mode)
        for check in todo:
            seen = evidence[check.name]
            if check.scenario == "look-alikes" or max(seen.effects, default=0) > self._expected(check).most:
                continue
            wanted = _with(self._expected(check), rounds=_CONTROL_ROUNDS, records=(), midway="", answer="")
            control = self._try(bench, check, wanted, tell, label="control: ")
            seen.control = max(control.effects, default=0)
            notes = [*control.notes, *filter(None, [control.unfinished])]
            seen.notes += [f"control: {note}" for note in notes]
        bench.stop_workers()

    def _try(self, bench: Bench, check: Check, wanted: Expected, tell: Tell, label: str = "") -> Evidence:
        name = f"{label}{check.name}"

        def advance(done: int) -> None:
            tell(Progress(self.code.label, name, done, wanted.rounds))

        advance(0)
        unfinished: str | None = None
        try:
            numbers = SCENARIOS[check.scenario](bench, Trial(self.description, wanted, check.victim, advance))
        except Exception as error:  # whatever it is: the other checks are still to be done
            unfinished = str(error) if isinstance(error, NotReached) else f"{type(error).__name__}: {error}"
            numbers = bench.begun[-1:]
            bench.stop_workers()
        try:
            evidence = bench.close_check(numbers, records=bool(wanted.records))
        except Exception as error:  # the same
            unfinished = unfinished or f"{type(error).__name__}: {error}"
            evidence = bench.end_check()
        evidence.unfinished = unfinished
        advance(wanted.rounds)
        return evidence

    def _expected(self, check: Check) -> Expected:
        rounds = self.description.rounds if check.scenario == "two-at-once" else 1
        return _with(
            expected(
                check.scenario,
                self.guard.policy,
                rounds=rounds,
                survives=check.victim == "parent" and self._has_children,
            ),
            check=check.name,
        )

    def _result(
        self, check: Check, evidence: Mapping[str, Evidence], took: Mapping[str, float]
    ) -> CheckResult:
        if check.skipped is not None:
            return CheckResult(
                name=check.name,
                title=check.title,
                verdict=Verdict.SKIPPED,
                reasons=(check.skipped,),
                expected=None,
                evidence=Evidence(),
                seconds=0.0,
            )
        wanted = self._expected(check)
        verdict, reasons = judge(wanted, evidence[check.name])
        seen = evidence[check.name]
        if verdict is Verdict.HOLDS:
            seen.logs, seen.events = [], []
        else:
            reasons += tuple(seen.notes)
        return CheckResult(
            name=check.name,
            title=check.title,
            verdict=verdict,
            reasons=reasons,
            expected=wanted,
            evidence=seen,
            seconds=took[check.name],
        )


def control_mode(description: Description, guard: NoGuard | SemelGuard) -> Mode | None:
    """How the job is delivered without its guard; None: there is no way, or a reason why not."""
    control = description.control
    if control.none is not None:
        return None
    given = bool(control.environment) or control.deliver is not None
    if isinstance(guard, SemelGuard) or (guard.is_semels and not given):
        return Mode("control", blind=True, environment=control.environment)
    if given:
        return Mode("control", environment=control.environment)
    return None


def _with(wanted: Expected, **changes: Any) -> Expected:
    """The same but for these."""
    changed: Expected = msgspec.structs.replace(wanted, **changes)
    return changed
