"""The shop of examples/, seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from semel.cli.demonstration.example import SPEED, load_modules

LOCATION: Final = "shop.jobs:app"
SPEED_VARIABLE: Final = "SHOP_SPEED"
PROVIDER_VARIABLE: Final = "SHOP_PROVIDER"
QUEUE: Final = "charges"
_AMOUNT: Final = 1999


@dataclass(frozen=True)
class Shop:
    """The application: its folder, and its modules."""

    folder: Path
    jobs: Any
    orders: Any
    policies: Any
    provider: Any

    @property
    def lease(self) -> float:
        """Seconds, of jobs and of operations."""
        seconds: float = self.jobs.app.settings.lease.total_seconds()
        return seconds

    def create_tables(self) -> None:
        with self.jobs.connect() as connection:
            self.orders.create_tables(connection)

    def take_orders(self, kind: str, cards: Sequence[str]) -> list[int]:
        """Store orders and their jobs, all in one transaction; answers the orders' ids."""
        job = self.jobs.app.jobs[kind]
        ids = []
        with self.jobs.connect() as connection:
            for card in cards:
                order = self.orders.add_order(connection, card, _AMOUNT)
                job.using(tx=connection).enqueue(order_id=order.id)
                ids.append(int(order.id))
        return ids


def load_shop(database: str) -> Shop:
    """Import the shop, at the demo's speed, and point it to a database."""
    names = ("jobs", "orders", "policies", "provider")
    folder, modules = load_modules("shop", names, {SPEED_VARIABLE: str(SPEED)})
    shop = Shop(folder, *modules)
    shop.jobs.app.point_to(database)
    return shop
