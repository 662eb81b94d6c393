"""Writes payments.csv and deploys.txt: three months of the market's payments, with repeats of known kinds.

    python make_payments.py

The same every time: the seed is fixed. 12 payouts are paid again 600 s later (the visibility time-out), 5 within seconds of
each other (two workers at once), 4 days later (enqueued again), 9 within two minutes after a deploy.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 92
PAYOUTS = 3_000
Paid = tuple[datetime, int]


def main() -> None:
    chance = random.Random(53)
    deploys = sorted(
        BEGIN + timedelta(days=chance.randrange(DAYS), hours=chance.randrange(8, 17)) for _ in range(14)
    )
    payments = sorted([*plain(chance), *repeats(chance, deploys)])
    with Path("payments.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["paid_at", "payout_id", "payment"])
        for at, payout in payments:
            writer.writerow(
                [at.isoformat(timespec="milliseconds"), payout, f"pay_{chance.getrandbits(32):08x}"]
            )
    with Path("deploys.txt").open("w", encoding="utf-8") as file:
        file.writelines(f"{at.isoformat()}\n" for at in deploys)


def plain(chance: random.Random) -> Iterator[Paid]:
    """Each payout once."""
    for payout in range(PAYOUTS):
        yield moment(chance), 10_000 + payout


def repeats(chance: random.Random, deploys: list[datetime]) -> Iterator[Paid]:
    """Payouts of their own that were paid twice."""
    numbers = iter(range(20_000, 21_000))
    for _ in range(12):
        first, payout = moment(chance), next(numbers)
        yield first, payout
        yield first + timedelta(seconds=600 + chance.uniform(0, 3)), payout
    for _ in range(5):
        first, payout = moment(chance), next(numbers)
        yield first, payout
        yield first + timedelta(seconds=chance.uniform(0.02, 0.9)), payout
    for _ in range(4):
        first, payout = moment(chance), next(numbers)
        yield first, payout
        yield first + timedelta(days=chance.uniform(2, 6)), payout
    for _ in range(9):
        deploy, payout = chance.choice(deploys), next(numbers)
        yield deploy - timedelta(seconds=chance.uniform(5, 40)), payout
        yield deploy + timedelta(seconds=chance.uniform(5, 90)), payout


def moment(chance: random.Random) -> datetime:
    return BEGIN + timedelta(seconds=chance.uniform(0, DAYS * 86_400))


if __name__ == "__main__":
    main()
