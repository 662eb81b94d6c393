"""As whom PostgreSQL runs: as the caller, or, where it refuses the caller, as nobody in the caller's place.

It refuses root, and a user who is in no list of users (as in some containers). They start it in a user
namespace in which their number shows as nobody's: no second user, no change of owner, and a private home will
do. Where namespaces are refused (as in many containers) root becomes the real nobody, who must then own the
directory and reach the programs.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from semel.embedded.binaries import Binaries
from semel.embedded.place import NOBODY, Place
from semel.errors import EmbeddedServerError


@dataclass(frozen=True)
class Identity:
    """``prefix`` goes before PostgreSQL's commands; ``owner`` must own its files (None: the caller does)."""

    prefix: tuple[str, ...] = ()
    owner: int | None = None

    def own(self, *paths: Path) -> None:
        """Give the paths to the owner, where there is one."""
        if self.owner is not None:
            for path in paths:
                os.chown(path, self.owner, self.owner)


def choose_identity(place: Place, binaries: Binaries) -> Identity:
    """Who runs the server of this place; raises EmbeddedServerError where the caller has no way to."""
    root = os.geteuid() == 0
    if not root and _is_listed(os.geteuid()):
        return Identity()
    namespace = Identity(("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--"))
    nobodys = root and place.directory.stat().st_uid == NOBODY
    if not nobodys and _runs(namespace, "true"):
        return namespace
    if not root:
        raise _refused(
            f"This user's number, {os.geteuid()}, is in no list of users, as PostgreSQL wants it to be"
        )
    return _as_nobody(place, binaries)


def _as_nobody(place: Place, binaries: Binaries) -> Identity:
    nobody = Identity(
        ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"), owner=NOBODY
    )
    refused = "PostgreSQL does not run as root, this system refuses user namespaces"
    if not _runs(nobody, "true"):
        raise _refused(f"{refused} (or lacks unshare), and setpriv of package util-linux does not work")
    if not _runs(nobody, binaries.program("postgres"), "--version"):
        raise _refused(f"{refused}, and user nobody cannot run {binaries.directory}/postgres")
    nobody.own(place.directory)
    if not _runs(nobody, "test", "-w", str(place.directory)):
        os.chown(place.directory, 0, 0)
        raise _refused(f"{refused}, and user nobody cannot reach {place.directory}")
    return nobody


def _is_listed(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def _runs(identity: Identity, *command: str) -> bool:
    if shutil.which(identity.prefix[0]) is None:
        return False
    done = subprocess.run(  # noqa: S603
        [*identity.prefix, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd="/",
        timeout=30,
    )
    return done.returncode == 0


def _refused(reason: str) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"{reason}.",
        holds="Nothing was started, and data already there is kept.",
        remedy="Run semel as an ordinary user, or put its environment and SEMEL_HOME where every user may "
        "read, or give the URL of a server that runs (SEMEL_DATABASE_URL).",
    )
