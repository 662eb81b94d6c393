"""What replay needs of a queue: to start its workers, send to it, and say what it does by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from semel.replay.description import Message
from semel.replay.processes import Victim, Worker


@dataclass(frozen=True)
class Surroundings:
    """Where the workers of one run live: their code, their environment, and the folder of their logs."""

    code: Path
    """The folder that they start in, first on their path."""
    environment: Mapping[str, str]
    """All of it, with what loads the wrapper."""
    directory: Path


@dataclass(frozen=True)
class Sent:
    """A message that was sent: what it takes to send the same again, under the same id where the broker lets us."""

    delivery: str
    message: Message
    extra: Mapping[str, str] = field(default_factory=dict)


class Way(Protocol):
    """One job on one queue."""

    victims: tuple[Victim, ...]
    """Whom it makes sense to kill."""

    def targets(self) -> Mapping[str, str]:
        """What a replay would write to, by what it is (``broker``, ``database``): addresses without passwords."""
        ...

    def foreign(self) -> list[str]:
        """What else is there now, in words: messages of others, workers of others. Empty: nothing was seen."""
        ...

    def start(self, surroundings: Surroundings, *, concurrency: int = 1) -> Worker:
        """Start a worker, in a process group of its own; return when it takes messages. Raises `WorkerDidNotStart`."""
        ...

    def send(self, message: Message, number: int) -> Sent:
        """Send one message; ``number`` is its operation's."""
        ...

    def send_again(self, sent: Sent) -> Sent:
        """Deliver the same message once more, as an at-least-once broker does."""
        ...

    def pending(self) -> int:
        """How many messages the broker has: waiting, delayed, or in a worker."""
        ...

    def redelivers_within(self, victim: Victim) -> float:
        """Seconds within which the broker itself delivers again what such a victim had; 0: not, or not soon."""
        ...

    def clear(self) -> None:
        """Take out what this run sent and is still there."""
        ...

    def eager(self) -> str | None:
        """Why a delivery would never pass the broker and a worker's process; None where it does."""
        ...

    def close(self) -> None:
        """End every process and connection of this way."""
        ...
