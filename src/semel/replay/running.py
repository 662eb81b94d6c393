"""A whole run: the expectations are written, every check is done with and without the guard, and judged."""

from __future__ import annotations

import itertools
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from semel.core.durations import to_timedelta
from semel.errors import ConfigurationError
from semel.replay.bench import Bench, Mode, Told
from semel.replay.checks import Check, checks_for
from semel.replay.code import Code, laid_out
from semel.replay.constraint import constraint_checks
from semel.replay.control import NotReached, open_room
from semel.replay.counting import open_counter
from semel.replay.description import Description
from semel.replay.expectations import expected
from semel.replay.faults import PYTHON, VARIABLE
from semel.replay.guards import NoGuard, SemelGuard, find_guard
from semel.replay.judging import judge
from semel.replay.results import CheckResult, CodeRun, Evidence, Expected, Run, Verdict
from semel.replay.scenarios import SCENARIOS, Trial
from semel.replay.staging import project_of, refuse_foreign, require_staging, targets_of
from semel.replay.ways.opening import open_way
from semel.replay.ways.way import Surroundings, Way
from semel.replay.written import write_expectations

_CONTROL_ROUNDS: Final = 3
_PACKAGES: Final = ("semel", "celery", "boto3", "redis", "psycopg")


@dataclass(frozen=True)
class Options:
    """How to run."""

    directory: Path
    """For the expectations and the workers' logs."""
    only: tuple[str, ...] = ()
    """Names of checks, or their beginnings; empty: all."""
    rounds: int | None = None
    seed: int | None = None
    """The first operation's number; None: made of the time, so that no two runs share an operation."""
    code: tuple[tuple[str, str], ...] = ()
    """Versions to run, by label: a folder or a revision of git. Empty: the working directory."""
    shared: bool = False
    """Run beside other traffic."""
    constraint: bool = True
    """Whether the guard's table is put aside for a copy without the constraint."""


@dataclass(frozen=True)
class Progress:
    """How far it is."""

    label: str
    check: str
    done: int
    total: int


Tell = Callable[[Progress], None]


def replay(description: Description, options: Options, *, progress: Tell | None = None) -> Run:
    """Replay the job. Raises NotStaging, ConfigurationError, WorkerDidNotStart; a check that goes wrong is a verdict."""
    began, clock = datetime.now(UTC), time.monotonic()
    seed = options.seed if options.seed is not None else int(time.time() * 1000) % 1_000_000_000
    tell = progress or (lambda _: None)
    if options.rounds is not None:
        description = msgspec.structs.replace(description, rounds=options.rounds)
    numbers = itertools.count(seed)
    with ExitStack() as stack:
        codes = stack.enter_context(laid_out(options.code))
        benches = [stack.enter_context(_open(description, code, options, numbers)) for code in codes]
        newest = benches[-1]
        for each in benches:
            each.choose(options.only)
        written = write_expectations(
            options.directory,
            description,
            newest.expectations(),
            policy=newest.guard.policy.words,
            versions=_versions(),
            seed=seed,
            code={each.code.label: each.code.shown for each in benches},
            skipped={check.name: check.skipped for check in newest.checks if check.skipped},
        )
        runs = tuple(each.run(tell) for each in benches)
    return Run(
        name=description.name,
        began=began,
        took=timedelta(seconds=time.monotonic() - clock),
        seed=seed,
        policy=newest.guard.policy.words,
        expectations=str(written),
        versions=_versions(),
        runs=runs,
    )


class _CodeBenches:
    """One version of the code: its guard, its way, and a bench for each mode."""

    def __init__(
        self,
        description: Description,
        code: Code,
        options: Options,
        *,
        way: Way,
        guard: NoGuard | SemelGuard,
        make: Callable[[Mode], Bench],
    ) -> None:
        self.description = description
        self.code = code
        self.guard = guard
        self.checks = checks_for(description, guard.policy, way.victims)
        self._options = options
        self._way = way
        self._make = make

    def choose(self, only: tuple[str, ...]) -> None:
        """Keep the checks that are wanted. Raises ConfigurationError for one that is not there."""
        names = [check.name for check in self.checks]
        for each in only:
            if not any(name.startswith(each) for name in names):
                raise ConfigurationError(
                    f"There is no check {each!r}.", remedy=f"There are: {', '.join(names)}."
                )
        if only:
            self.checks = [check for check in self.checks if check.name.startswith(only)]

    def expectations(self) -> list[Expected]:
        """What each check must come to."""
        return [self._expected(check) for check in self.checks if check.skipped is None]

    def run(self, tell: Tell) -> CodeRun:
        """Do all checks: with the guard, then without it; then judge."""
        todo = [check for check in self.checks if check.skipped is None]
        evidence: dict[str, Evidence] = {}
        took: dict[str, float] = {}
        bench = self._make(Mode("guarded"))
        for check in todo:
            clock = time.monotonic()
            evidence[check.name] = self._try(bench, check, self._expected(check), tell)
            took[check.name] = time.monotonic() - clock
        bench.stop_workers()
        self._controls(todo, evidence, tell)
        results = [self._result(check, evidence, took) for check in self.checks]
        facts: dict[str, Any] = {"processes": max((each.processes for each in evidence.values()), default=0)}
        if self._options.constraint and not self._options.only:
            results += constraint_checks(self.guard, self._without_constraint(tell), facts)
        return CodeRun(label=self.code.label, code=self.code.shown, checks=tuple(results), guard=facts)

    def _without_constraint(self, tell: Tell) -> Callable[[], tuple[Expected, Evidence]]:
        def run() -> tuple[Expected, Evidence]:
            check = next(each for each in self.checks if each.scenario == "two-at-once")
            wanted = expected("two-at-once", self.guard.policy, rounds=_CONTROL_ROUNDS)
            bench = self._make(Mode("unconstrained", unconstrained=True))
            try:
                return wanted, self._try(bench, replace(check, name="without the constraint"), wanted, tell)
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
            wanted = _with(self._expected(check), rounds=_CONTROL_ROUNDS, records=())
            control = self._try(bench, check, wanted, tell, label="control: ")
            seen.control = max(control.effects, default=0)
            seen.notes += [f"control: {note}" for note in control.notes]
        bench.stop_workers()

    def _try(self, bench: Bench, check: Check, wanted: Expected, tell: Tell, label: str = "") -> Evidence:
        name = f"{label}{check.name}"

        def advance(done: int) -> None:
            tell(Progress(self.code.label, name, done, wanted.rounds))

        advance(0)
        try:
            numbers = SCENARIOS[check.scenario](bench, Trial(self.description, wanted, check.victim, advance))
        except NotReached as error:
            bench.evidence.notes.append(str(error))
            numbers = [bench.last_number]
            bench.stop_workers()
        evidence = bench.close_check(numbers, records=bool(wanted.records))
        advance(wanted.rounds)
        return evidence

    def _expected(self, check: Check) -> Expected:
        rounds = self.description.rounds if check.scenario == "two-at-once" else 1
        return _with(expected(check.scenario, self.guard.policy, rounds=rounds), check=check.name)

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
    if isinstance(guard, SemelGuard):
        return Mode("control", blind=True, environment=control.environment)
    if control.environment or control.deliver is not None:
        return Mode("control", environment=control.environment)
    return None


def _with(wanted: Expected, **changes: Any) -> Expected:
    """The same but for these."""
    changed: Expected = msgspec.structs.replace(wanted, **changes)
    return changed


@contextmanager
def _open(
    description: Description, code: Code, options: Options, numbers: itertools.count[int]
) -> Iterator[_CodeBenches]:
    """Everything that one version needs; nothing of it is left when it closes."""
    logs = options.directory / "logs" / (code.label or "code")
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="semel-", dir="/tmp")))
        room = stack.enter_context(open_room(short / "room"))
        plain = Surroundings(code.directory, _environment(description, code, wrapped=False), logs)
        wrapped = replace(plain, environment=_environment(description, code, wrapped=True))
        guard = find_guard(description, plain)
        stack.callback(guard.close)
        way = open_way(description.deliver, plain, short / "broker")
        stack.callback(way.close)
        require_staging(project_of(Path.cwd()), targets_of(description, way.targets()))
        refuse_foreign(way.foreign(), shared=options.shared)
        counter = stack.enter_context(
            open_counter(description, room, distinct=guard.policy.name == "provider_key")
        )
        control_way = way
        if description.control.deliver is not None:
            control_way = open_way(description.control.deliver, plain, short / "control")
            stack.callback(control_way.close)
        watch = () if description.watch.call is None else (description.watch.call,)
        told = Told(
            short / "room", logs / "journal.jsonl", watch, _seconds(description.watch.dwell, "watch.dwell")
        )

        def make(mode: Mode) -> Bench:
            bench = Bench(
                control_way if mode.name == "control" else way,
                wrapped,
                mode,
                room=room,
                counter=counter,
                guard=guard,
                told=told,
                numbers=numbers,
                patience=_seconds(description.patience, "patience"),
                redelivery=_seconds(description.redelivery, "redelivery"),
            )
            stack.callback(bench.stop_workers)
            return bench

        yield _CodeBenches(description, code, options, way=way, guard=guard, make=make)


def _environment(description: Description, code: Code, *, wrapped: bool) -> dict[str, str]:
    """This process's own, the code first on Python's path, and in front of it what loads the wrapper."""
    paths = [str(PYTHON)] if wrapped else []
    paths += [str(code.directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **description.environment}
    environment.pop(VARIABLE, None)
    return environment | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def _seconds(value: str | float, name: str) -> float:
    seconds: float = to_timedelta(value, name=name).total_seconds()
    return seconds


def _versions() -> dict[str, str]:
    """What ran."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
