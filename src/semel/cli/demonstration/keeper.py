"""The process that tidies up after a demonstration, also after one that was killed.

It waits for the end of its standard input, which the demo holds open as long as it lives.
"""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from semel.embedded import EmbeddedServer
from semel.embedded.place import Place

_TIDY_SECONDS: Final = 30.0
_PAUSE: Final = 0.2


def main(folder: Path) -> int:
    """Wait, then stop the server and delete the folder, unless told to keep them."""
    if sys.stdin.read().strip() == "keep":
        return 0
    limit = time.monotonic() + _TIDY_SECONDS
    _remove(folder)
    while folder.exists() and time.monotonic() < limit:
        time.sleep(_PAUSE)  # a demo that was killed may have left its initdb at work, which ends soon
        _remove(folder)
    return 1 if folder.exists() else 0


def _remove(folder: Path) -> None:
    place = Place.at(folder / "postgres")
    with suppress(Exception):  # it is tried again, and what cannot be stopped is removed in any case
        EmbeddedServer(place.directory).destroy()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(place.runtime, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
