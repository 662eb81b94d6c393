"""A measure, and how its repetitions go: each is a turn in which every contestant is measured once, one after another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psycopg

from benchmarks.driving import Bench
from benchmarks.figures import Figure, Reading, Refused, Turn
from benchmarks.peers import Peer
from benchmarks.processes import wait_for_quiet

Contest = Callable[[], Reading]


@dataclass(frozen=True, slots=True)
class Measure:
    """``contests`` answers what each contestant does once, by its name."""

    name: str
    what: str
    unit: str
    contests: Callable[[Bench], Mapping[str, Contest]]
    figures: tuple[Figure, ...]
    also: Mapping[str, str]
    """What a reading holds besides its value, and its unit."""
    turns: int = 1_000
    """At most so many: what takes minutes, and does not vary."""


def take_turns(measure: Measure, bench: Bench, repetitions: int) -> list[Turn]:
    """Every second turn goes the other way round, so that a drift of the machine favours nobody."""
    contests = list(measure.contests(bench).items())
    turns: list[Turn] = []
    for number in range(min(repetitions, measure.turns)):
        turn: dict[str, Reading | Refused] = {}
        for name, contest in contests if number % 2 == 0 else reversed(contests):
            wait_for_quiet(bench.patience)
            turn[name] = _once(measure, name, contest)
        turns.append(turn)
    return turns


def each_of(bench: Bench, peers: tuple[Peer, ...], do: Callable[[Peer], Reading]) -> dict[str, Contest]:
    """The peers that can take part, doing the same."""
    return {peer.name: lambda peer=peer: do(peer) for peer in peers if bench.takes_part(peer)}  # type: ignore[misc]


def _once(measure: Measure, name: str, contest: Contest) -> Reading | Refused:
    try:
        found: Reading | Refused = contest()
    except Refused as refusal:
        found = refusal
    except (psycopg.Error, subprocess.TimeoutExpired) as error:
        found = Refused(f"{type(error).__name__}: {error}")
    said = f"REFUSED {found}" if isinstance(found, Refused) else _said(measure, found)
    print(f"{measure.name}: {name}: {said}", file=sys.stderr, flush=True)
    return found


def _said(measure: Measure, found: Reading) -> str:
    also = "".join(f", {name} {value:.4g}" for name, value in found.also.items())
    noise = f"others {found.noise.foreign:.2f}, steal {found.noise.steal:.2f}"
    return f"{found.value:,.4g} {measure.unit}{also} ({noise})"
