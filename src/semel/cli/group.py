"""Errors at the edge: one sentence and a way out on stderr, and the exit code that they stand for."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

DONE, NOT_SO, USAGE, UNREACHABLE = 0, 1, 2, 3


class SemelGroup(TyperGroup):
    """The root of the commands; it turns semel's errors into messages."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; where it fails, say so and exit with the code. ``--debug`` shows the traceback."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            code = explain(error)
            if code is None:
                raise
            raise typer.Exit(code) from None


class DefaultGroup(TyperGroup):
    """A group whose first command is meant where none is named: ``semel replay FILE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is no command's name, and asks for no help, is the first command's."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def explain(error: Exception) -> int | None:
    """Print what an error says to people; answers the exit code, None where it is not one to be explained."""
    from semel.errors import SemelError

    if isinstance(error, SemelError):
        show(error.happened, error.holds, error.remedy, code=error.code)
        return exit_code(error)
    if isinstance(error, UnicodeError):
        show("What was given is not text: it has bytes that are no UTF-8.", "", "Check the arguments.")
        return USAGE
    if isinstance(error, OverflowError):
        show("A number or a date is too large.", f"({error})", "Check the arguments.")
        return USAGE
    if any(kind.__name__ == "DataError" for kind in type(error).__mro__):
        show(
            f"The database takes no such value: {str(error).strip().splitlines()[0]}.",
            "",
            "More: semel --debug …",
        )
        return USAGE
    if isinstance(error, OSError) and error.filename is not None:
        show(f"{error.filename} cannot be used: {error.strerror}.", "", "Name another file.")
        return USAGE
    if getattr(error, "sqlstate", None) is not None:
        show(f"The database refused: {str(error).strip().splitlines()[0]}.", "", "More: semel --debug …")
        return UNREACHABLE
    return None


def show(happened: str, holds: str, remedy: str, *, code: str = "") -> None:
    """One error, on stderr: what happened, what is stored, its code, and on a line of its own the way out."""
    mark = f"[{code}]" if code else ""
    typer.echo(f"Error: {' '.join(part for part in (happened, holds, mark) if part)}", err=True)
    if remedy:
        typer.echo(f"  {remedy}", err=True)


def exit_code(error: Exception) -> int:
    """What an error of semel stands for."""
    from semel.errors import (
        ArgumentError,
        BrokerUnreachable,
        ConfigurationError,
        DatabaseUnreachable,
        EmbeddedServerError,
        NotStaging,
        QueryRefused,
        StatementTimedOut,
        UnknownKind,
        WorkerDidNotStart,
    )

    unreachable = (
        BrokerUnreachable,
        DatabaseUnreachable,
        EmbeddedServerError,
        StatementTimedOut,
        WorkerDidNotStart,
    )
    if isinstance(error, unreachable):
        return UNREACHABLE
    if isinstance(error, ConfigurationError | ArgumentError | UnknownKind | NotStaging | QueryRefused):
        return USAGE
    return NOT_SO
