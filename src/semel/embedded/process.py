"""Start the server's process: as a child of this one, or in the background.

A child can be killed and reaped at will, which ``pg_ctl start`` does not give: its server is nobody's child.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from semel.embedded.postmaster import is_alive

IN_BACKGROUND: Final = 'exec 3>&1 </dev/null >>"$0" 2>&1; "$@" 3>&- & echo $! >&3'
TETHER: Final = 'read -r word; [ "$word" = released ] || kill -INT "$1"'


class ServerProcess(Protocol):
    """What a start watches and a stop ends."""

    @property
    def pid(self) -> int:
        """The process's number: the server's own, no wrapper's."""
        ...

    def ended(self) -> bool:
        """Whether it is gone, reaped where it is ours."""
        ...


@dataclass(frozen=True)
class BackgroundProcess:
    """A server that outlives this process and is not its child."""

    pid: int

    def ended(self) -> bool:
        """A zombie counts as ended."""
        return not is_alive(self.pid)


class OwnedProcess:
    """A direct child, tethered: should this process die without a word, the server is told to stop."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self._tether = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", TETHER, "semel-tether", str(child.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The server's number."""
        return self.child.pid

    def ended(self) -> bool:
        """Reaps the child when it is gone, and lets the tether go."""
        if self.child.poll() is None:
            return False
        if self._tether.returncode is None:
            self._tether.communicate(b"released\n")
        return True


def start_owned(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> OwnedProcess:
    """Start a child in a session of its own, so that Ctrl-C in the terminal does not reach it."""
    with log.open("ab") as output:
        return OwnedProcess(
            subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=log.parent,
                start_new_session=True,
            )
        )


def start_in_background(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> BackgroundProcess:
    """Start it through a shell that ends at once, so that it is no child of this process."""
    printed = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", IN_BACKGROUND, str(log), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=log.parent,
        start_new_session=True,
        check=True,
    ).stdout
    return BackgroundProcess(int(printed))
