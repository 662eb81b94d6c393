"""``semel replay init``: a description and a test file for a job that is found in the code."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import AsJson
from semel.cli.output import print_json, print_table

if TYPE_CHECKING:
    from semel.replay.finding import Candidate


def init(
    path: Annotated[Path, typer.Argument(help="The code: a folder or a file.")] = Path(),
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="NAME", help="Which job, where there are several; its end will do."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write replay-NAME.toml and tests/test_replay_NAME.py for a job of the code.

    The code is read, never run. Files that are there are never written over.

    Example: semel replay init shop --job charge_order
    """
    from semel.replay.checking import TODO
    from semel.replay.finding import find_functions, find_jobs

    found = find_jobs(path)
    if job is not None and not any(each.name.endswith(job) for each in found):
        found = find_functions(path, job) or found
    chosen = _choose(found, job)
    if chosen is None:
        _list(found, as_json=as_json)
        return
    folder = _folder(path)
    written = _write(chosen, folder)
    if as_json:
        print_json({"job": chosen.name, "way": chosen.way, "place": chosen.place, "written": written})
        return
    for each in written:
        typer.echo(f"Written: {each}")
    open_yet = TODO in Path(written[0]).read_text("utf-8")
    do = f"Fill in what is marked {TODO}" if open_yet else "Read it"
    code = "" if folder is None else f" --code {shlex.quote(folder)}"
    typer.echo(
        f"For {chosen.name} ({chosen.way}, {chosen.place}). {do}, then: semel replay {written[0]}{code} --list"
    )
    if folder is not None:
        typer.echo(
            f"The test runs the code in {folder}. When the mended code lies in another folder, change CODE there."
        )


def _folder(path: Path) -> str | None:
    """The folder that the code is imported from, as one writes it; None: this one."""
    from semel.replay.finding import code_folder

    here, folder = Path.cwd(), code_folder(path)
    if folder == here:
        return None
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def _choose(found: list[Candidate], job: str | None) -> Candidate | None:
    """The one that is meant; None where there are several and none was named."""
    from semel.errors import ConfigurationError

    if not found:
        raise ConfigurationError(
            "No job was found: no Celery task, no job or consumer of semel, no guarded function, no receive_message, no "
            "Sidekiq class.",
            holds="Nothing was written.",
            remedy="Name the folder of its code, or a plain function of it by --job NAME; or write the description by hand: "
            "docs/replay.md",
        )
    if job is None:
        return found[0] if len(found) == 1 else None
    exact = [each for each in found if each.name == job]
    meant = exact or [each for each in found if each.name.endswith(job)]
    if len(meant) == 1:
        return meant[0]
    names = ", ".join(each.name for each in (meant or found))
    raise ConfigurationError(
        f"{'Several jobs are' if meant else 'No job is'} called {job!r}.",
        holds="Nothing was written.",
        remedy=f"{'They are' if meant else 'There are'}: {names}.",
    )


def _list(found: list[Candidate], *, as_json: bool) -> None:
    if as_json:
        print_json({"jobs": [{"name": each.name, "way": each.way, "place": each.place} for each in found]})
        return
    rows = (
        (each.name, each.way, each.place, each.watched[0].call if each.watched else "?", each.operation or "")
        for each in found
    )
    print_table("", ("job", "by", "place", "the call that may have the effect", "guarded by"), rows)
    typer.echo(f"Name one: semel replay init --job {found[0].name}", err=True)


def _write(chosen: Candidate, folder: str | None) -> list[str]:
    """Both files, or none."""
    from semel.errors import ConfigurationError
    from semel.replay.finding.writing import description_of, short_name, test_of

    name = short_name(chosen)
    description, test = (
        Path(f"replay-{name}.toml"),
        Path("tests") / f"test_replay_{name.replace('-', '_')}.py",
    )
    for each in (description, test):
        if each.exists():
            raise ConfigurationError(
                f"{each} is there already.", holds="Nothing was written.", remedy="Delete it, or keep it."
            )
    test.parent.mkdir(exist_ok=True)
    texts = (description_of(chosen), test_of(chosen, description.name, folder))
    for file, text in zip((description, test), texts, strict=True):
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    return [str(description), str(test)]
