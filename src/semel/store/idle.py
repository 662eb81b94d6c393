"""Whether an idle connection can be used once more."""

from __future__ import annotations

import select


def has_something_to_say(file_descriptor: int) -> bool:
    """An idle connection that can be read has been ended, or is not as we left it."""
    if not hasattr(select, "poll"):  # eventlet takes it away, as it would block all that it runs
        return bool(select.select([file_descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(file_descriptor, select.POLLIN)
    return bool(poll.poll(0))
