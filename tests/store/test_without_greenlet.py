"""Sync SQLAlchemy works where greenlet is not installed, which its asyncio part needs."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
sys.modules["greenlet"] = None
import sqlalchemy, semel
from sqlalchemy.orm import Session
app = semel.App({url!r})
@app.job
def pack(order: int) -> None: ...
engine = sqlalchemy.create_engine({url!r}.replace("postgresql://", "postgresql+psycopg://"))
with Session(engine) as session, session.begin():
    print(pack.using(tx=session).enqueue(1).created)
once = semel.Once(engine)
@once.operation("pack", key="order")
def guarded(op, order: int) -> int: return order
print(guarded(7), guarded(7))
once.close()
"""


def test_enqueuing_and_guarding_need_no_greenlet(database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(url=database_url)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["True", "7", "7"], "")
