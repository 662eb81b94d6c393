"""A mail server for the demonstration: real SMTP on loopback, slow, and unwilling half of the time.

It runs on a thread of this process and keeps a record of every message that it was offered, which is the
other side of what the jobs' table says.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from semel.errors import ConfigurationError

REFUSED_SHARE: Final = 0.5
BEFORE_VERDICT: Final = (0.1, 0.3)
"""Seconds it thinks, from and to."""
BEFORE_REPLY: Final = (0.1, 0.2)
"""Seconds between its verdict and its reply. Who dies here never learns that the message was accepted."""
_START_SECONDS: Final = 10.0

ACCEPTED: Final = "250 2.0.0 accepted"
BUSY: Final = "451 4.3.2 busy, try again later"
CLOSED: Final = "450 4.2.1 this mailbox is closed"


@dataclass(frozen=True, slots=True)
class Offer:
    """One message that the server gave its verdict on."""

    recipient: str
    message_id: str
    accepted: bool
    at: float


@dataclass
class Record:
    """What the server was offered and what it said. Written by the server's thread, read by others."""

    seed: int
    offers: list[Offer] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    """Recipients that are refused always."""
    unaware: set[str] = field(default_factory=set)
    """Recipients whose message was accepted while its sender does not know yet."""
    tries: Counter[str] = field(default_factory=Counter)

    def judge(self, recipient: str, message_id: str) -> str:
        """Note an offer and answer with the reply. The n-th verdict on a recipient follows from the seed."""
        self.tries[recipient] += 1
        if recipient in self.closed:
            reply = CLOSED
        else:
            chance = random.Random(f"{self.seed} {recipient} {self.tries[recipient]}").random()  # noqa: S311
            reply = BUSY if chance < REFUSED_SHARE else ACCEPTED
        self.offers.append(Offer(recipient, message_id, reply is ACCEPTED, time.monotonic()))
        return reply

    @property
    def verdicts(self) -> str:
        """In words."""
        offers = tuple(self.offers)
        accepted = sum(offer.accepted for offer in offers)
        return f"{accepted} accepted, {len(offers) - accepted} refused"

    def accepted(self, recipient: str) -> int:
        """How many messages the recipient has got."""
        return sum(offer.accepted for offer in tuple(self.offers) if offer.recipient == recipient)

    def refused(self, recipient: str) -> int:
        """How many offers to the recipient were turned down."""
        return sum(not offer.accepted for offer in tuple(self.offers) if offer.recipient == recipient)


class MailServer:
    """A context manager; it listens on ``port`` of 127.0.0.1 inside."""

    def __init__(self, seed: int) -> None:
        self.record = Record(seed)
        self.port = 0
        self._protocol = _load_protocol()
        self._stop: Callable[[], object] | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mail-server", daemon=True)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        """What aiosmtpd calls for each message."""
        recipient = envelope.rcpt_tos[0]
        await asyncio.sleep(random.uniform(*BEFORE_VERDICT))  # noqa: S311
        reply = self.record.judge(recipient, _message_id(envelope.content))
        if reply is ACCEPTED:
            self.record.unaware.add(recipient)
        try:
            await asyncio.sleep(random.uniform(*BEFORE_REPLY))  # noqa: S311
        finally:
            self.record.unaware.discard(recipient)
        return reply

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_START_SECONDS):
            raise ConfigurationError("The mail server of the demo did not start.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            self._stop()
        self._thread.join(_START_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        server = await loop.create_server(
            lambda: self._protocol(self, hostname="localhost", ident="semel demo"), "127.0.0.1", 0
        )
        self.port = server.sockets[0].getsockname()[1]
        self._stop = partial(loop.call_soon_threadsafe, done.set)
        self._ready.set()
        await done.wait()
        server.close()


def _load_protocol() -> Any:
    try:
        from aiosmtpd.smtp import SMTP
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "The demo needs a mail server to send to, and aiosmtpd is not installed.",
            remedy="Run: pip install 'semel[demo]'",
        ) from error
    return SMTP


def _message_id(content: bytes) -> str:
    for line in content.splitlines():
        name, _, value = line.partition(b":")
        if name.lower() == b"message-id":
            return value.strip().decode("ascii", "replace")
    return ""
