"""What an attempt holds beside its claim: for adapters whose broker delivers a message again unless its hold is extended."""

from __future__ import annotations

from typing import Protocol


class Beside(Protocol):
    """A message that is this attempt's as long as it is extended, as its claim is: the two are kept together."""

    def lost(self) -> str | None:
        """Why somebody else may have the message by now; None as long as it is this attempt's.

        Asked before each act and each extension of the claim, so it answers at once. With a reason, the act is refused and
        the claim extended no more.
        """
        ...

    def claim_lost(self) -> None:
        """The claim is lost: let the message go, and extend it no more. May be told more than once, from any thread."""
        ...
