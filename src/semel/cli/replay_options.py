"""The options of ``semel replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Name = Annotated[
    str, typer.Argument(metavar="DESCRIPTION", help="A TOML file, or module:attribute.", show_default=False)
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="CHECK", help="This check; can be repeated. --list names them."),
]
Rounds = Annotated[
    int | None, typer.Option("--rounds", min=1, help="Rounds of two workers at once [the description's].")
]
Seed = Annotated[int | None, typer.Option("--seed", help="The first operation's number [from the time].")]
CodePlaces = Annotated[
    list[str] | None,
    typer.Option(
        "--code",
        metavar="LABEL=PLACE",
        help="A folder or a revision of git; repeated, each is run, the newest last: --code before=v1 --code after=.",
    ),
]
Staging = Annotated[
    bool, typer.Option("--staging", help="Declare what this description writes to as staging, and end.")
]
Shared = Annotated[bool, typer.Option("--shared", help="Run although there is other traffic.")]
Constraint = Annotated[
    bool,
    typer.Option(
        "--constraint/--no-constraint", help="Show that the check goes red on a copy of the table without it."
    ),
]
Listed = Annotated[
    bool, typer.Option("--list", help="List the checks that would run, and those skipped with the reason.")
]
Directory = Annotated[Path, typer.Option("--directory", help="For what was expected, and the workers' logs.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the page to sign.")]
JunitFile = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")]
JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="[FILE.json]", help="Print JSON, or write it; its shape is in docs/replay.md."
    ),
]
