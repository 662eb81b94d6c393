"""What Redis's refusals say about messages: nothing, mostly."""

from __future__ import annotations

from typing import Final

from semel.errors import BrokerUnavailable, BrokerUnreachable, MessageRefused
from semel.relay.connecting import said

_OF_THE_MESSAGE: Final = ("WRONGTYPE", "string exceeds maximum", "invalid bulk length")
"""Redis's words for what another message would not meet: the key of its queue is no list, it is too large."""


def meaning(error: Exception, *, alone: bool) -> Exception:
    """A full memory, a replica, a disk that cannot be written and the like say nothing about the messages."""
    told = said(error).rpartition("of pipeline caused error: ")[2]  # before it: a part of the job
    if not any(each in told for each in _OF_THE_MESSAGE):
        return BrokerUnavailable(f"Redis: {told}")
    if alone:
        return MessageRefused(f"Redis refuses: {told}")
    return BrokerUnreachable(f"Redis refuses one of several: {told}")  # each is then sent alone
