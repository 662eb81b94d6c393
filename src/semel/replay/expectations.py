"""What each check must come to, by the policy: pure, and written down before the first delivery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from semel.replay.results import RETURNED, Expected

ONCE: Final = "once"
"""The policy of whoever names none: one effect in the end, whatever happened."""
POLICIES: Final = ("row", "provider_key", "lookup", "hold", "accept_duplicate", "accept_miss", ONCE)
_ACTED: Final = ("completed acted",)
_BEFORE_THE_EFFECT: Final = ("killed-on-entry", "killed-past-claim", "old-claim")
_CLAIMED: Final = "claimed"
_LOST: Final = "ClaimLost"


@dataclass(frozen=True)
class Policy:
    """The declared effect, and what of the guard decides the counts."""

    name: str
    words: str
    extra: int = 0
    """Further effects that `AcceptDuplicate` accepts."""
    explicit: bool = False
    """Whether the job marks its point of no return: a death before it leaves nothing in doubt."""
    recorded: bool = False
    """Whether records are semel's, so that their states can be read."""
    decidable: bool = True
    """Whether a person's decision can be written from here."""

    @property
    def claims_apart(self) -> bool:
        """Whether its claims are semel's, committed by themselves: then there is something between claim and completion."""
        return self.recorded and self.name != "row"


@dataclass(frozen=True)
class _End:
    least: int
    most: int
    records: tuple[str, ...] = _ACTED
    midway: str = ""
    answer: str = ""


def expected(check: str, policy: Policy, *, rounds: int = 1, survives: bool = False) -> Expected:
    """What this check must come to. ``survives``: the job's own process may live on, and end as if nothing had been."""
    end = _END_OF.get(check, _after_once)(policy)
    if survives:
        end = _End(min(end.least, 1), max(end.most, 1), tuple(dict.fromkeys((*_ACTED, *end.records))))
    return Expected(
        check=check,
        least=end.least,
        most=end.most,
        records=end.records if policy.recorded else (),
        midway=end.midway if policy.claims_apart else "",
        answer=end.answer if policy.recorded else "",
        control=1 if _acts_once_unguarded(check, policy) else 2,
        because=policy.words,
        rounds=rounds,
    )


def _acts_once_unguarded(check: str, policy: Policy) -> bool:
    """Killed before the effect the next delivery acts, once, without a guard as well; a row is gone with its transaction."""
    if check in _BEFORE_THE_EFFECT:
        return True
    return policy.name == "row" and check in ("killed-on-return", "exception-after-effect")


def _after_once(policy: Policy) -> _End:
    """Nobody died in doubt."""
    return _End(1, 1)


def _while_young(policy: Policy) -> _End:
    """A second delivery changes nothing about a claim that is alive."""
    return _End(1, 1, midway=_CLAIMED)


def _after_change(policy: Policy) -> _End:
    """Another payload under the same key is refused."""
    return _End(1, 1, answer="PayloadMismatch")


def _after_entry(policy: Policy) -> _End:
    """Its worker died past the point of no return, before the effect."""
    match policy.name:
        case "hold":
            return _End(0, 0, ("held",))
        case "accept_miss":
            return _End(0, 0, ("completed missed",))
        case _:
            return _End(1, 1)


def _after_return(policy: Policy) -> _End:
    """Its worker died after the effect, before the completion."""
    match policy.name:
        case "hold":
            return _End(1, 1, ("held",))
        case "lookup":
            return _End(1, 1, ("completed found",))
        case "accept_duplicate":
            return _End(1, 1 + policy.extra, _ACTED)
        case "accept_miss":
            return _End(1, 1, ("completed missed",))
        case _:
            return _End(1, 1)


def _after_claim(policy: Policy) -> _End:
    """Its worker died past the commit of the claim, before any code of the job."""
    return _End(1, 1) if policy.explicit else _after_entry(policy)


def _after_pause(policy: Policy) -> _End:
    """Its worker slept past the lease, within the job and before the call, and woke up when another had decided.

    Before ``op.acting()`` it is refused. Past it no record can stop it: what the other did comes on top.
    """
    first = _after_claim(policy)
    if policy.explicit and policy.claims_apart:
        return _End(1, 1, answer=_LOST)
    if policy.explicit or policy.name in ("row", "provider_key"):
        return _End(1, 1)
    more = {"lookup": 2, "accept_duplicate": 1 + policy.extra, "accept_miss": 1, "hold": 1}.get(
        policy.name, 1
    )
    return _End(min(first.least, 1), more, (*first.records, *_ACTED))


def _after_cut(policy: Policy) -> _End:
    """The connection was lost at the completion, before its commit or after it: it is written again, and known again."""
    return _End(1, 1, answer=RETURNED)


def _after_late_completion(policy: Policy) -> _End:
    """Its worker slept past the lease right before the completion, and woke up when another one had decided.

    What the other one claimed or decided stays, but for a held operation: there the one that knows completes it.
    """
    after = _after_return(policy)
    match policy.name:
        case "hold":
            return _End(1, 1, answer=RETURNED)
        case "accept_miss":
            return _End(1, 1, after.records, answer=RETURNED)
        case "lookup":
            return _End(1, 1, after.records, answer=_LOST)
        case _:
            return _End(1, after.most, after.records, midway=_CLAIMED, answer=_LOST)


def _after_late_look(policy: Policy) -> _End:
    """One that looked slept past its lease with the answer; another one looked and acted; then it woke up."""
    return _End(1, 1, answer=_LOST)


_END_OF: Final[Mapping[str, Callable[[Policy], _End]]] = MappingProxyType(
    {
        "young-claim": _while_young,
        "changed-payload": _after_change,
        "killed-on-entry": _after_entry,
        "old-claim": _after_entry,
        "killed-on-return": _after_return,
        "exception-after-effect": _after_return,
        "killed-past-claim": _after_claim,
        "paused-past-lease": _after_pause,
        "late-completion": _after_late_completion,
        "late-look": _after_late_look,
        "lost-connection": _after_cut,
        "lost-answer": _after_cut,
    }
)
