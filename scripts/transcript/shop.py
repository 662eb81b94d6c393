"""A payment that dies at the worst moment, for docs/transcript.txt (recorded by scripts/record_transcript.py)."""

import os
import signal
import sys
from pathlib import Path

import psycopg

import semel

app = semel.App(lease="2 s", poll="0.2 s")


@app.job(context=True, transaction=True)
def pay(context: semel.JobContext, connection: psycopg.Connection, order: int) -> None:
    connection.execute("INSERT INTO payments VALUES (%s)", (order,))  # in the job's own transaction
    with Path("outbox.txt").open("a") as outbox:  # outside of it, as an email would be
        outbox.write(f"receipt for order {order}\n")
    if context.crashes == 0:  # the first time, everything dies here
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with psycopg.connect(
        app.url
    ) as connection:  # one transaction: commits at the end, rolls back on an error
        connection.execute("CREATE TABLE IF NOT EXISTS payments (order_id integer)")
        print(pay.using(tx=connection).enqueue(int(sys.argv[1])))
        if "--fail" in sys.argv:
            raise SystemExit("something else went wrong: rolled back")
