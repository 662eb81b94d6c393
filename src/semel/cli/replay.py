"""``semel replay``: run a description, and print and write what came of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperCommand

from semel.cli.group import NOT_SO
from semel.cli.output import named_progress_bar, print_json, print_table
from semel.cli.replay_options import (
    CodePlaces,
    Constraint,
    Directory,
    HtmlFile,
    JsonFile,
    JunitFile,
    Listed,
    Name,
    Only,
    Rounds,
    Seed,
    Shared,
    Staging,
)

if TYPE_CHECKING:
    from semel.replay.description import Description
    from semel.replay.results import Run
    from semel.replay.running import Options, Progress

DIRECTORY = "replays"
_STDOUT = "-"


class RunCommand(TyperCommand):
    """``--json`` alone is for standard output; with a file whose name ends in ``.json``, for that."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give ``--json`` its value where it has none."""
        given: list[str] = []
        for place, word in enumerate(args):
            given.append(word)
            following = args[place + 1] if place + 1 < len(args) else ""
            if word == "--json" and following != _STDOUT and not following.endswith(".json"):
                given.append(_STDOUT)
        return super().parse_args(ctx, given)


def run(
    description: Name,
    only: Only = None,
    rounds: Rounds = None,
    seed: Seed = None,
    code: CodePlaces = None,
    staging: Staging = False,
    shared: Shared = False,
    constraint: Constraint = True,
    listed: Listed = False,
    directory: Directory = Path(DIRECTORY),
    html: HtmlFile = None,
    junit: JunitFile = None,
    as_json: JsonFile = None,
) -> None:
    """Replay a job on a staging system; the exit code is 1 where a check fails or is vacuous.

    Example: semel replay run replay-charge.toml --rounds 200 --html charge.html
    """
    from semel.replay.code import parse_code
    from semel.replay.reading import read_description
    from semel.replay.running import Options

    options = Options(
        directory=directory,
        only=tuple(only or ()),
        rounds=rounds,
        seed=seed,
        code=parse_code(code or ()),
        shared=shared,
        constraint=constraint,
    )
    read = read_description(description)
    if staging or listed:
        _look(read, options, declares=staging, as_json=as_json is not None)
        return
    _look_at_files(directory, html, junit, None if as_json in (None, _STDOUT) else Path(str(as_json)))
    found = _replay(read, options, description, quiet=as_json == _STDOUT)
    for line in _report(found, html=html, junit=junit, as_json=as_json):
        typer.echo(line, err=as_json == _STDOUT)
    if not found.holds:
        raise typer.Exit(NOT_SO)


def _look(read: Description, options: Options, *, declares: bool, as_json: bool) -> None:
    """Show what would be run and where, and declare it where that is asked for."""
    from semel.replay.planning import plan
    from semel.replay.staging import declare, project_of

    with _code_explained():
        planned = plan(read, options)
    if as_json:
        checks = [
            {"name": each.name, "title": each.title, "skipped": each.skipped} for each in planned.checks
        ]
        print_json(
            {
                "policy": planned.policy,
                "targets": planned.targets,
                "foreign": planned.foreign,
                "checks": checks,
            }
        )
    elif declares:
        print_table("It writes to", ("what", "address"), planned.targets.items())
    else:
        rows = (
            (each.name, f"skipped: {each.skipped}" if each.skipped else each.title) for each in planned.checks
        )
        print_table("", ("check", "what is done"), rows)
    if declares:
        path = declare(project_of(Path.cwd()), planned.targets)
        typer.echo(f"Declared as staging, in {path}. It is run without --staging.", err=as_json)
    for each in planned.foreign:
        typer.echo(f"There is other traffic: {each}.", err=True)


def _replay(read: Description, options: Options, name: str, *, quiet: bool) -> Run:
    from semel.errors import NotStaging
    from semel.replay.running import replay

    with _code_explained(), _ending_by_signal(), named_progress_bar(quiet=quiet) as advance:
        try:
            return replay(read, options, progress=_advancing(advance))
        except NotStaging as error:
            remedy = error.remedy.replace("DESCRIPTION", name)
            raise NotStaging(error.happened, holds=error.holds, remedy=remedy) from None


def _advancing(advance: Callable[[str, int, int], None] | None) -> Callable[[Progress], None] | None:
    if advance is None:
        return None

    def tell(progress: Progress) -> None:
        label = f"{progress.label}: " if progress.label else ""
        advance(f"{label}{progress.check}", progress.done, progress.total)

    return tell


@contextmanager
def _code_explained() -> Iterator[None]:
    """What the job's own code answered instead of being read is wrong usage."""
    from semel.errors import ConfigurationError
    from semel.replay.aside import AsideFailed

    try:
        yield
    except AsideFailed as error:
        raise ConfigurationError(f"The job's code says: {error}") from error


@contextmanager
def _ending_by_signal() -> Iterator[None]:
    """End as by Ctrl-C at SIGTERM, and when the terminal closes, so that workers end, tables come back and folders go."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)  # nothing that takes an exception of a check for its verdict stops it

    heard = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(found: Run, *, html: Path | None, junit: Path | None, as_json: str | None) -> Iterator[str]:
    """Print the run and write what was asked for; says where."""
    from rich.console import Console

    from semel.replay.report.as_json import as_json as to_json
    from semel.replay.report.html import as_html
    from semel.replay.report.junit import as_junit
    from semel.replay.report.terminal import print_run

    if as_json == _STDOUT:
        typer.echo(to_json(found).decode(), nl=False)
    else:
        console = Console(highlight=False)
        print_run(found, console if console.is_terminal else Console(width=1_000, highlight=False))
    if as_json not in (None, _STDOUT):
        yield _write(Path(str(as_json)), to_json(found))
    if html is not None:
        yield _write(html, as_html(found).encode())
    if junit is not None:
        yield _write(junit, as_junit(found))


def _look_at_files(directory: Path, *files: Path | None) -> None:
    """Raise now what would be raised when the run is over, and nothing of it could be written."""
    directory.mkdir(parents=True, exist_ok=True)
    for each in filter(None, files):
        each.parent.mkdir(parents=True, exist_ok=True)
        new = not each.exists()
        with each.open("ab"):
            pass
        if new:
            each.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return f"Written: {path}"
