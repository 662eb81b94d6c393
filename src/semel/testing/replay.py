"""Replays as tests: one run for a whole module, one test for each check."""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from semel.errors import SemelError
from semel.replay.aside import AsideFailed
from semel.replay.checks import checks_for
from semel.replay.description import CalledFunction, Description, Watch
from semel.replay.expectations import ONCE, Policy
from semel.replay.reading import is_file, read_description
from semel.replay.report.html import as_html
from semel.replay.report.wording import counted_words, expected_words, outcome
from semel.replay.results import CheckResult, Run, Verdict
from semel.replay.running import Options, replay

WHOLE: Final = "the-whole-run"
_CONSTRAINT: Final = ("constraint", "without-constraint")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One run that tests ask for; runs that are alike are done once."""

    description: str | Description
    place: str = ""
    """Where it is asked for: in each process of pytest the same, which a description in Python is not."""
    code: tuple[tuple[str, str], ...] = ()
    rounds: int | None = None
    seed: int | None = None
    only: tuple[str, ...] = ()
    shared: bool = False
    constraint: bool = True


class Ran(msgspec.Struct):
    """What a run came to, as other processes of pytest read it."""

    page: str = ""
    run: Run | None = None
    error: str = ""


@dataclass
class Runs:
    """The runs of one session of pytest, which pytest-xdist's processes share."""

    directory: Path
    """Where their processes can all read."""
    pages: Path
    """Where the HTML goes, and what was expected."""
    rounds: int | None = None
    """Of the command line: it goes before the test's own."""
    done: dict[str, Ran] = field(default_factory=dict)

    def once(self, wanted: Wanted) -> Ran:
        """The run; done here, unless it was done here or in another process, which is waited for."""
        if wanted.place not in self.done:
            kept = self._kept(wanted)
            with _locked(kept.with_suffix(".lock")):
                if not kept.exists():
                    kept.write_bytes(msgspec.json.encode(self._try(wanted), enc_hook=str))
            self.done[wanted.place] = msgspec.json.decode(kept.read_bytes(), type=Ran)
        return self.done[wanted.place]

    def teller(self, wanted: Wanted, check: str) -> str:
        """The check whose test says why there was no run: the first that asks, in whatever process; it stays that one."""
        told = self._kept(wanted).with_suffix(".told")
        with _locked(told.with_suffix(".lock")):
            if not told.exists():
                told.write_text(check, "utf-8")
            return told.read_text("utf-8")

    def _kept(self, wanted: Wanted) -> Path:
        key = hashlib.sha256(wanted.place.encode()).hexdigest()[:16]
        return self.directory / f"semel-replay-{key}.json"

    def run(self, wanted: Wanted) -> tuple[Run, Path]:
        """Do it, and write its page."""
        description = wanted.description
        read = description if isinstance(description, Description) else read_description(description)
        options = Options(
            directory=self.pages,
            only=wanted.only,
            rounds=wanted.rounds if self.rounds is None else self.rounds,
            seed=wanted.seed,
            code=wanted.code,
            shared=wanted.shared,
            constraint=wanted.constraint,
        )
        run = replay(read, options)
        page = self.pages / f"{run.name}-{run.began:%Y%m%dT%H%M%S.%fZ}.html"
        page.write_text(as_html(run), "utf-8")
        return run, page

    def _try(self, wanted: Wanted) -> Ran:
        try:
            run, page = self.run(wanted)
        except (SemelError, AsideFailed) as error:
            return Ran(error=str(error))
        except Exception:  # said by a test, and not run again for the others
            return Ran(error=traceback.format_exc())
        return Ran(page=str(page), run=run)


def replay_tests(
    description: str | Path | Description,
    *,
    code: Mapping[str, str] | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    only: Sequence[str] = (),
    shared: bool = False,
    constraint: bool = True,
) -> Callable[..., None]:
    """A test for each check of a replay, and one for the whole of it, over one run: ``test_replay = replay_tests(…)``.

    A relative file is found from the folder of the test, or one above it. With ``code`` the newest is tested, and that
    those before it fail; options are those of ``semel replay``.
    """
    caller = inspect.stack()[1]
    wanted = Wanted(
        description=description
        if isinstance(description, Description)
        else _find(str(description), caller.filename),
        place=f"{caller.filename}:{caller.lineno}",
        code=tuple((code or {}).items()),
        rounds=rounds,
        seed=seed,
        only=tuple(only),
        shared=shared,
        constraint=constraint,
    )

    @pytest.mark.parametrize("check", _names(wanted))
    def test_replay(check: str, semel_replays: Runs) -> None:
        ran = semel_replays.once(wanted)
        if ran.run is None:
            teller = semel_replays.teller(wanted, check)
            if teller != check:
                pytest.skip(f"there was no run: the test of {teller} says why")
            pytest.fail(ran.error, pytrace=False)
        _judge(check, ran.run, ran.page)

    return test_replay


def _find(name: str, caller: str) -> str:
    """The file, from the folder of the caller or one above it; what is no file as it is."""
    if not is_file(name) or Path(name).is_absolute():
        return name
    folders = Path(caller).resolve().parents
    return next((str(folder / name) for folder in folders if (folder / name).is_file()), name)


def _names(wanted: Wanted) -> list[str]:
    """Of the checks that a run may have; each kill once, whomever it kills. No broker is asked for it."""
    some = Description(
        name="some", deliver=CalledFunction(function="some:job"), watch=Watch(call="some.call"), message={}
    )
    names = [check.scenario for check in checks_for(some, Policy(ONCE, "", recorded=True), ("parent",))]
    names += _CONSTRAINT if wanted.constraint and not wanted.only else ()
    if wanted.only:
        names = [
            name
            for name in names
            if any(name.startswith(each) or each.startswith(name) for each in wanted.only)
        ]
    return [*names, WHOLE]


def _judge(name: str, run: Run, page: str) -> None:
    if name == WHOLE:
        if not run.holds:
            pytest.fail(f"{outcome(run)}\nThe report: {page}", pytrace=False)
        return
    checks = [
        check for check in run.runs[-1].checks if check.name == name or check.name.startswith(f"{name}-")
    ]
    trouble = [check for check in checks if check.verdict in (Verdict.FAILS, Verdict.VACUOUS)]
    if trouble:
        said = [line for check in trouble for line in _said(check)]
        pytest.fail("\n".join([*said, f"The report: {page}"]), pytrace=False)
    if all(check.verdict is Verdict.SKIPPED for check in checks):
        reasons = [reason for check in checks for reason in check.reasons]
        pytest.skip("; ".join(reasons) or "it does not apply to this job")


def _said(check: CheckResult) -> Iterator[str]:
    yield f"{check.name}: {check.verdict.value}. {check.title}"
    yield f"  expected {expected_words(check.expected)}, counted {counted_words(check.evidence)}"
    yield from (f"  {reason}" for reason in check.reasons)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def open_runs(config: pytest.Config, base: Path) -> Runs:
    """The session's runs; ``base`` is its temporary folder, which under pytest-xdist lies in one that all share."""
    directory = base.parent if hasattr(config, "workerinput") else base
    pages = Path(config.getoption("--semel-replay-html") or "replays")
    return Runs(directory, config.invocation_params.dir / pages, config.getoption("--semel-replay-rounds"))


def replay_now(runs: Runs, description: str | Path | Description, **options: Any) -> Run:
    """A run of its own, each time; what the fixture ``semel_replay`` calls."""
    code = tuple(dict(options.pop("code", None) or {}).items())
    only = tuple(options.pop("only", ()))
    given = description if isinstance(description, Description) else str(description)
    return runs.run(Wanted(description=given, code=code, only=only, **options))[0]
