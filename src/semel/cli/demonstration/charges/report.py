"""The tables of the second act: what is promised, before it runs, and what came of it."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from semel.cli.demonstration.charges.figures import ChargeFigures, MethodFigures
from semel.cli.demonstration.charges.promises import CHARGES_NOT_GUARANTEED
from semel.cli.demonstration.charges.script import HOW_MANY, Method, foretell_all

_DASH = "–"


def print_promised(console: Console, methods: tuple[Method, ...]) -> None:
    """Before anything runs: what happens to the orders, and what each policy promises."""
    fates = _table("What will happen to the orders of each way to charge")
    fates.add_column("orders", justify="right")
    fates.add_column("what happens to the first attempt")
    for fate, number in HOW_MANY.items():
        fates.add_row(str(number), fate.value)
    console.print(fates)
    table = _table("What is promised beforehand")
    table.add_column("way to charge")
    table.add_column("charges of an order\nnever more than", justify="right")
    table.add_column("completed\nmeans")
    table.add_column("held\nhere", justify="right")
    table.add_column("where the worker ended in the call")
    for method in methods:
        held = sum(each.held for each in foretell_all(method))
        promised = method.promise
        if promised is None:
            table.add_row(method.name, _DASH, _DASH, str(held), "nothing is promised: it charges again")
        else:
            words = (promised.never_more_than, promised.completed_means, str(held), promised.stale)
            table.add_row(method.name, *words)
    console.print(table)


def print_charge_report(console: Console, figures: ChargeFigures, broken: list[str]) -> None:
    """What came of it."""
    console.print(_outcome(figures))
    for decision in figures.decisions:
        console.print(
            f"A person decided order {decision.order}: {decision.command}\n  then: {decision.state} "
            f"({decision.outcome}), {decision.charges_after} charge",
            markup=False,
            soft_wrap=True,
        )
    console.print()
    console.print("Not guaranteed", style="bold")
    for sentence in CHARGES_NOT_GUARANTEED:
        console.print(f"  - {sentence}", markup=False)
    console.print()
    if broken:
        console.print("Not as promised", style="bold red")
        for sentence in broken:
            console.print(f"  - {sentence}", markup=False)
        return
    unguarded = figures.methods[0]
    console.print(
        f"As promised: without the guard {unguarded.charged_more_than_once} of {unguarded.orders} orders were charged "
        f"more than once; with it, none beyond what its policy allows. {figures.seconds:.0f} s.",
        style="bold green",
    )


def _outcome(figures: ChargeFigures) -> Table:
    table = _table("Charges that the provider made for each order, before a person decided")
    most = max(len(method.orders_by_charges) for method in figures.methods)
    table.add_column("way to charge")
    for number in range(most):
        table.add_column(f"{number} charge{'' if number == 1 else 's'}", justify="right")
    table.add_column("completed", justify="right")
    table.add_column("held", justify="right")
    for heading in ("promised:\nnever more", "completed\nmeans", "held"):
        table.add_column(heading, justify="right")
    for method in figures.methods:
        table.add_row(method.method, *_numbers(method, most), *_promised(method))
    return table


def _numbers(method: MethodFigures, most: int) -> list[Text]:
    """Numbers of orders; those that a customer would complain about stand out."""
    numbers = []
    for charges in range(most):
        orders = method.orders_by_charges.get(str(charges), 0)
        wrong = orders and charges > 1
        numbers.append(Text(str(orders) if orders else ".", style="bold red" if wrong else ""))
    return [*numbers, Text(str(method.completed)), Text(str(method.held))]


def _promised(method: MethodFigures) -> list[str]:
    if method.never_more_than is None:
        return [_DASH, _DASH, str(method.foretold_held)]
    return [str(method.never_more_than), str(method.completed_means), str(method.foretold_held)]


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False)
