"""The process that tidies up after a demonstration, also after one that was killed.

It waits for the end of its standard input, which the demo holds open as long as it lives.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from semel.embedded import EmbeddedServer


def main(folder: Path) -> int:
    """Wait, then stop the server and delete the folder, unless told to keep them."""
    if sys.stdin.read().strip() == "keep":
        return 0
    EmbeddedServer(folder / "postgres").destroy()
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
