"""Before a redo: whether the messages that it is to send can be sent from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from semel.core.operation_report import OperationFilter
from semel.errors import ConfigurationError
from semel.operate.resending import Resender
from semel.store.guard_views import find_operation, list_adapters
from semel.store.run import Session, run

REACHED_BY: Final[Mapping[str, str]] = MappingProxyType(
    {"celery": "--celery MODULE:APP", "sidekiq": "--sidekiq URL"}
)
"""What has to be given for a message to be sent again by these adapters."""


def refuse_unsendable(session: Session, which: OperationFilter | int, resenders: Sequence[Resender]) -> None:
    """Refuse a redo of operations that would be released while nobody named the broker that their messages go to.

    Messages that no option reaches are not refused: those are for a person to send in any case.
    """
    missing = sorted(_adapters(session, which) & REACHED_BY.keys() - {each.adapter for each in resenders})
    if missing:
        options = " and ".join(REACHED_BY[adapter] for adapter in missing)
        raise ConfigurationError(
            f"There are messages that came by {' and '.join(missing)}, and no {options} was given.",
            holds="Nothing was changed.",
            remedy=f"Give {options}; or --no-send, and send them again yourself.",
        )


def _adapters(session: Session, which: OperationFilter | int) -> frozenset[str]:
    if isinstance(which, OperationFilter):
        return run(list_adapters(which), session)
    record = run(find_operation(which), session)
    message = None if record is None else record.message
    return (
        frozenset({str(message["adapter"])})
        if isinstance(message, dict) and "adapter" in message
        else frozenset()
    )
