"""Where the demonstration plays: a PostgreSQL in a temporary folder, which a keeper removes however it ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from semel.embedded import EmbeddedServer
from semel.store.migrate import migrate_database

KEEPER: Final = (sys.executable, "-m", "semel.cli.demonstration.keeper")
_KEEPER_SECONDS: Final = 60.0


class Stage:
    """A context manager: inside, a server with semel's tables runs at ``url``.

    The keeper is a process that waits for this one to let go of it, by leaving or by dying, and then stops the
    server and deletes the folder. With ``keep`` the server stays, in the background.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.keep = keep
        self.url = ""
        self.folder = Path(tempfile.mkdtemp(prefix="semel-demo-"))
        self.folder.chmod(0o711)  # PostgreSQL may have to run as another user, who must reach its own folder
        self.server = EmbeddedServer(self.folder / "postgres")
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def version(self) -> str:
        """PostgreSQL's major version."""
        return self.server.status().version or "?"

    def __enter__(self) -> Self:
        self._keeper = subprocess.Popen(  # noqa: S603
            [*KEEPER, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            self.url = self.server.start(background=self.keep)
            migrate_database(self.url)
        except BaseException:
            self.keep = False
            self._let_go()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    def _let_go(self) -> None:
        """Return when the keeper has done its work; a second Ctrl-C leaves it at work by itself."""
        assert self._keeper is not None
        if not self.keep:
            self.server.stop()
        self._keeper.communicate(b"keep\n" if self.keep else b"", timeout=_KEEPER_SECONDS)
