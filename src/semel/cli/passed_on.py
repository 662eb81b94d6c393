"""Commands whose options are their own: everything after the name is passed on, and nothing loaded before."""

from __future__ import annotations

import typer


def demo(ctx: typer.Context) -> None:
    """Watch jobs fail, retry and survive a kill.

    On a server of its own.

    Example: semel demo
    """
    from semel.cli.demo import main

    raise typer.Exit(main(ctx.args))


def bench(ctx: typer.Context) -> None:
    """Measure jobs a second on this machine.

    Example: semel bench --json
    """
    from semel.cli.bench import main

    raise typer.Exit(main(ctx.args))
