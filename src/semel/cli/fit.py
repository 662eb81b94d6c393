"""``semel fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import AsJson
from semel.cli.group import NOT_SO

if TYPE_CHECKING:
    from semel.fit.questions import Question
    from semel.fit.verdict import Verdict

Answers = Annotated[
    Path | None,
    typer.Option(
        "--answers", metavar="FILE", help="Take the answers from a TOML or JSON file, and ask nothing."
    ),
]
WriteAnswers = Annotated[
    Path | None,
    typer.Option(
        "--write-answers", metavar="FILE", help="Write a file to be filled in, TOML or JSON, and end."
    ),
]
OfJob = Annotated[
    str | None,
    typer.Option("--job", metavar="MODULE:NAME", help="A guarded job: what its code says is filled in."),
]


def fit(
    answers: Answers = None, write_answers: WriteAnswers = None, job: OfJob = None, as_json: AsJson = False
) -> None:
    """Ask whether a job can be made safe: it fits, with what to declare, or stop, with each reason and what would change it.

    Asks in the terminal, each question with why it matters and an example; or takes the answers from a file. The exit code is
    0 where it fits and 1 where not. It sends nothing anywhere.

    Example: semel fit --answers charge-order.toml
    """
    from semel.fit.verdict import check_answers, judge

    known: dict[str, str] = {} if job is None else _from_code(job)
    if answers is not None:
        from semel.fit.files import read_answers

        known |= read_answers(answers)
    if write_answers is not None:
        _write(write_answers, known)
        return
    if answers is None:
        known = _ask(known)
    verdict = judge(check_answers(known))
    _report(verdict, known, as_json=as_json)
    if not verdict.fits:
        raise typer.Exit(NOT_SO)


def _from_code(name: str) -> dict[str, str]:
    from semel.cli.place import load
    from semel.fit.prefilling import answers_from
    from semel.note.ways import find_guard

    found: object = load(name, object, "guarded function")
    return answers_from(find_guard(found))


def _write(path: Path, known: dict[str, str]) -> None:
    from semel.errors import ConfigurationError
    from semel.fit.files import to_template

    if path.exists():
        raise ConfigurationError(f"{path} is there already.", remedy="Name another file, or remove it.")
    try:
        path.write_text(to_template(known, as_json=path.suffix == ".json"), "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}.", remedy="Make its folder, or name another."
        ) from error
    typer.echo(f"Written: {path}. Fill it in, then: semel fit --answers {path}")


def _ask(known: dict[str, str]) -> dict[str, str]:
    from semel.fit.questions import QUESTIONS, is_asked

    given = dict(known)
    for number, question in enumerate(QUESTIONS, 1):
        if is_asked(question, given):
            given[question.id] = _ask_one(question, f"{number}/{len(QUESTIONS)}", given.get(question.id))
    return given


def _ask_one(question: Question, place: str, known: str | None) -> str:
    """Until the answer is one. On stderr, so that ``--json`` stays alone on standard output."""
    from semel.errors import ConfigurationError
    from semel.fit.questions import UNKNOWN
    from semel.fit.verdict import check_answers

    typer.echo(f"\n[{place}] {question.text}", err=True)
    typer.echo(f"  {question.why}\n  Example: {question.example}", err=True)
    for choice, meaning in question.choices.items():
        typer.echo(f"    {choice:<17} {meaning}", err=True)
    while True:
        told: str = typer.prompt("  Your answer", default=known or UNKNOWN, err=True)
        try:
            return check_answers({question.id: told})[question.id]
        except ConfigurationError as error:
            typer.echo(f"  {error.happened} {error.remedy}", err=True)


def _report(verdict: Verdict, answers: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        from dataclasses import asdict

        from semel.cli.output import print_json

        print_json(asdict(verdict) | {"answers": answers})
        return
    if not verdict.fits:
        typer.echo("Stop.")
        for reason in verdict.reasons:
            typer.echo(f"- {reason.what} [{reason.code}]\n  What would change it: {reason.change}")
        return
    typer.echo(f"It fits, with the policy {verdict.chosen}. Write:\n")
    for line in verdict.lines:
        typer.echo(f"    {line}")
    typer.echo("")
    for caution in verdict.cautions:
        typer.echo(f"- {caution}")
    typer.echo("Next: replay it before and after, and write the note (semel note).")
