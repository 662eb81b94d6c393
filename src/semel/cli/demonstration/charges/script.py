"""What happens to each order, and what each policy makes of it: written down before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from semel.core.effects import AcceptDuplicate, AcceptMiss, Effect, Hold, Promise, promise

NO_GUARD: Final = "no guard"


class Fate(StrEnum):
    """What happens while an order is charged for the first time."""

    WELL = "nothing"
    KILLED_CLAIMED = "killed after the claim, before the call"
    KILLED_CALLING = "killed in the call, before the charge"
    KILLED_CHARGED = "killed after the charge, before its answer"
    LOST = "charged, and the answer timed out"
    LOST_TWICE = "charged, and the answer timed out; the next one's too"

    @property
    def killed(self) -> bool:
        return self in (Fate.KILLED_CLAIMED, Fate.KILLED_CALLING, Fate.KILLED_CHARGED)

    @property
    def uncertain(self) -> bool:
        """Whether the first attempt ends without anybody's knowing."""
        return self not in (Fate.WELL, Fate.KILLED_CLAIMED)


HOW_MANY: Final = MappingProxyType(
    {
        Fate.WELL: 10,
        Fate.KILLED_CLAIMED: 2,
        Fate.KILLED_CALLING: 2,
        Fate.KILLED_CHARGED: 3,
        Fate.LOST: 2,
        Fate.LOST_TWICE: 1,
    }
)
FATES: Final = tuple(fate for fate, number in HOW_MANY.items() for _ in range(number))
"""Of each method's orders, in their order."""

_BOUNDS: Final = MappingProxyType({"exactly 1": (1, 1), "1 or more": (1, None), "0 or 1": (0, 1)})
"""What the words for "completed means" allow."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to charge an order: a job of the shop's, and the effect that its guard declares."""

    name: str
    kind: str
    effect: Effect | None

    @property
    def promise(self) -> Promise | None:
        return None if self.effect is None else promise(self.effect)

    @property
    def most(self) -> int | None:
        """Never more charges of one order than this; None: nothing is promised."""
        return None if self.promise is None else int(self.promise.never_more_than)

    @property
    def completed_bounds(self) -> tuple[int, int | None]:
        """How many charges a completed order may have."""
        return (0, None) if self.promise is None else _BOUNDS[self.promise.completed_means]


@dataclass(frozen=True, slots=True)
class Foretold:
    """What an order comes to."""

    charges: int
    held: bool


def make_methods(policies: Any) -> tuple[Method, ...]:
    """The jobs of the shop with the policies that they declare; the one without the guard is first."""
    return (
        Method(NO_GUARD, "charge_order", None),
        Method("ProviderKey", "charge_order_with_key", policies.WITH_KEY),
        Method("Lookup", "charge_order_with_lookup", policies.WITH_LOOKUP),
        Method("Hold", "charge_order_or_hold", policies.OR_HOLD),
        Method("AcceptDuplicate", "charge_order_perhaps_twice", policies.PERHAPS_TWICE),
        Method("AcceptMiss", "charge_order_perhaps_never", policies.PERHAPS_NEVER),
    )


def foretell(fate: Fate, effect: Effect | None) -> Foretold:
    """What becomes of an order with this fate: its charges, and whether it waits for a person."""
    charged = 0 if fate is Fate.KILLED_CALLING else 1
    """In the attempt that nobody can tell about."""
    lost = {Fate.LOST_TWICE: 2, Fate.LOST: 1, Fate.KILLED_CHARGED: 1}.get(fate, 0)
    """Charges whose answer nobody got, where each attempt charges."""
    match effect:
        case None:
            return Foretold(1 + lost, held=False)
        case Hold() if fate.uncertain:
            return Foretold(charged, held=True)
        case AcceptMiss() if fate.uncertain:
            return Foretold(charged, held=False)
        case AcceptDuplicate(extra=extra) if fate.uncertain:
            return Foretold(min(1 + lost, 1 + extra), held=lost > extra)
    return Foretold(1, held=False)


def foretell_all(method: Method) -> Sequence[Foretold]:
    """Of every order of a method, in their order."""
    return [foretell(fate, method.effect) for fate in FATES]
