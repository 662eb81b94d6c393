"""How a kept message is sent again, where it came from another queue than the one beside the operations.

The operation is released first, and committed; only then is the message sent. So whatever happens in between, a message that
arrives finds a released operation, and one that was not sent shows up as stale and can be sent again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from semel.errors import NotFound
from semel.operate.acts import retry
from semel.operate.carry_out import carry_out
from semel.operate.held_jobs import ADAPTER, job_of
from semel.store.run import Session


class Resender(Protocol):
    """Sends the messages that one adapter kept."""

    @property
    def adapter(self) -> str:
        """The name under ``adapter`` in the messages that it sends."""
        ...

    def send(self, message: Mapping[str, Any], *, who: str, why: str) -> str:
        """Send it again and say in a sentence what was done. An exception says that it was not sent."""
        ...


class QueueResender:
    """Runs a semel job again whose operation is kept in another database than the job.

    For an operation beside its job nothing needs to be sent: the decision settles both in one commit.
    """

    adapter = ADAPTER

    def __init__(self, session: Session) -> None:
        self._session = session

    def send(self, message: Mapping[str, Any], *, who: str, why: str) -> str:
        job_id = job_of(message)
        if job_id is None:
            raise NotFound("The message names no job.")
        acted = carry_out(retry(job_id, who=who, why=why), self._session)
        return acted.note or f"Job {acted.job_id} runs again."


def find_resender(resenders: Sequence[Resender], message: Any) -> Resender | None:
    """Who can send it."""
    adapter = message.get("adapter") if isinstance(message, dict) else None
    return next((each for each in resenders if each.adapter == adapter), None)
