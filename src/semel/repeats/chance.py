"""How likely it is to see so many by chance: exact tails of the binomial and the Poisson distribution, in plain Python.

Each term comes from the one before it, beginning with one worked out through logarithms; what is added last no longer counts.
"""

from __future__ import annotations

import math

_ENOUGH = 1e-17


def binomial_tail(successes: int, trials: int, probability: float) -> float:
    """The chance of at least so many successes."""
    if successes <= 0:
        return 1.0
    if successes > trials or probability <= 0:
        return 0.0
    if probability >= 1:
        return 1.0
    if successes <= trials * probability:
        return max(0.0, 1.0 - binomial_tail(trials - successes + 1, trials, 1 - probability))
    logarithm = (
        math.lgamma(trials + 1)
        - math.lgamma(successes + 1)
        - math.lgamma(trials - successes + 1)
        + successes * math.log(probability)
        + (trials - successes) * math.log1p(-probability)
    )
    odds = probability / (1 - probability)
    return _sum_down(logarithm, lambda step: (trials - successes - step) / (successes + step + 1) * odds)


def poisson_tail(events: int, expected: float) -> float:
    """The chance of at least so many events where so many are expected; for more than expected."""
    if events <= expected:
        return 1.0
    if expected <= 0:
        return 0.0
    logarithm = events * math.log(expected) - expected - math.lgamma(events + 1)
    return _sum_down(logarithm, lambda step: expected / (events + step + 1))


def _sum_down(logarithm: float, ratio: object) -> float:
    assert callable(ratio)
    term = total = 1.0
    step = 0
    while term > total * _ENOUGH:
        term *= ratio(step)
        total += term
        step += 1
    return min(1.0, math.exp(min(0.0, logarithm + math.log(total))))
