"""Take an order and charge it by one of the jobs: python -m shop charge_order_or_hold card-1 1999"""

from __future__ import annotations

import sys

from shop.jobs import app, connect
from shop.orders import add_order, create_tables


def main(arguments: list[str]) -> int:
    if len(arguments) != 3 or arguments[0] not in app.jobs or not arguments[2].isdecimal():
        print(__doc__, f"\nThe jobs: {', '.join(app.jobs)}", file=sys.stderr)
        return 2
    kind, card, amount = arguments
    with app, connect() as connection:  # commits at the end of the block, rolls back if it raises
        create_tables(connection)
        order = add_order(connection, card, int(amount))
        app.jobs[kind].using(tx=connection).enqueue(order_id=order.id)
    print(f"Order {order.id} is taken; {kind} is a job now.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
