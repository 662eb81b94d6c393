"""One replica of a schedule in a process of its own: says when it is ready, goes when told, ticks until killed."""

from __future__ import annotations

import asyncio
import sys

from tests.schedules.helpers import ticks_over


async def main(url: str) -> None:
    """Wait for a line on standard input, so that all replicas start at once."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    await ticks_over(url).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
