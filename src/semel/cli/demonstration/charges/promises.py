"""What the policies promised before the run, held against the figures."""

from __future__ import annotations

from collections.abc import Iterator

from semel.cli.demonstration.charges.figures import ChargeFigures, MethodFigures, OrderFigures
from semel.cli.demonstration.charges.script import HOW_MANY, Fate, Method

CHARGES_NOT_GUARANTEED = (
    "That AcceptDuplicate charges once and AcceptMiss charges at all: they say so. They are for effects where a second "
    "one, or none, now and then is acceptable.",
    "That a worker which is paused past its lease inside its call does not act when it wakes: no record can stop it, "
    "only the provider (ProviderKey), or time (a lease well over the longest run, and the settle time over both).",
)


def broken_charge_promises(figures: ChargeFigures, methods: tuple[Method, ...]) -> list[str]:
    """Every expectation that failed, as a sentence; empty when all is as promised."""
    sentences = [*_of_the_script(figures)]
    for method, counted in zip(methods, figures.methods, strict=True):
        sentences += _of_a_method(method, counted)
    return [*sentences, *_of_decisions(figures)]


def _of_the_script(figures: ChargeFigures) -> Iterator[str]:
    """What was to happen did happen; without it, promises that hold say little."""
    for fate in (each for each in Fate if each.killed):
        wanted, had = HOW_MANY[fate] * len(figures.methods), figures.at_kill.get(fate.value, 0)
        if had != wanted:
            yield f"{wanted} orders were to be {fate.value}: {had} were."
    if not figures.answers_lost:
        yield "The provider must lose some answers; it lost none."
    for code in figures.worker_exit_codes:
        if code != 0:
            yield f"A worker that is told to stop must end with exit code 0; it was {code}."


def _of_a_method(method: Method, counted: MethodFigures) -> Iterator[str]:
    if method.effect is None:
        if not counted.charged_more_than_once:
            yield "Without the guard some orders must be charged twice; none was, so that this shows nothing."
    else:
        for each in counted.order_list:
            yield from _of_an_order(method, each)
    for each in counted.order_list:
        if not (each.ended or each.held):
            yield f"{method.name}: order {each.order} must end or be held; it is {each.state}."
        if (each.charges, each.state) != (each.foretold_charges, each.foretold_state):
            yield (
                f"{method.name}: order {each.order} ({each.fate}) was foretold to be {each.foretold_state} with "
                f"{_charges(each.foretold_charges)}; it is {each.state} with {_charges(each.charges)}."
            )


def _of_an_order(method: Method, each: OrderFigures) -> Iterator[str]:
    assert method.effect is not None
    assert method.most is not None
    assert method.promise is not None
    if each.charges > method.most:
        yield (
            f"{method.name} promised never more than {_charges(method.most)} of an order: order {each.order} "
            f"({each.fate}) has {each.charges}."
        )
    least, most = method.completed_bounds
    if each.ended and (each.charges < least or (most is not None and each.charges > most)):
        yield (
            f"{method.name} promised that a completed order has {method.promise.completed_means} of a charge: order "
            f"{each.order} ({each.fate}) has {each.charges}."
        )
    if each.effect != method.effect.name:
        yield f"The record of order {each.order} names the effect {each.effect}, not {method.effect.name}."


def _of_decisions(figures: ChargeFigures) -> Iterator[str]:
    if {decision.act for decision in figures.decisions} != {"done", "redo"}:
        yield "A person must decide about two held orders: one that was charged, one that was not."
    for decision in figures.decisions:
        if (decision.charges_after, decision.state, decision.job_status) != (1, "completed", "done"):
            yield (
                f"Order {decision.order} was decided ({decision.act}) and must be completed with 1 charge: it is "
                f"{decision.state} with {_charges(decision.charges_after)}, its job {decision.job_status}."
            )


def _charges(number: int) -> str:
    return f"{number} charge" if number == 1 else f"{number} charges"
