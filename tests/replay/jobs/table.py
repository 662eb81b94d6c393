"""A provider whose call is also in a table, which has it from before anybody could wrap it."""

from __future__ import annotations

import provider


def charge(order_id: int) -> None:
    provider.charge(order_id)


PAY = {"charge": charge}
