"""Lines in a file that processes append to, any of which may be killed at any moment."""

from __future__ import annotations

import os
from pathlib import Path

WIDTH = 128
"""Bytes of each line, filled up with spaces. It divides a page: Linux ends the write of a killed process between two
pages, and a line over such an edge would be left in part, with the next one glued to it."""


def append(path: Path, line: str) -> None:
    """Add a line as a whole or not at all. Who reads strips it."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        write(file, line)
    finally:
        os.close(file)


def write(file: int, line: str) -> None:
    """Add a line to a file that is open for appending."""
    filled = line.encode().ljust(WIDTH - 1) + b"\n"
    assert len(filled) == WIDTH, line
    os.write(file, filled)
