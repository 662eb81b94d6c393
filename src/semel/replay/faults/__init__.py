"""What replay loads into workers from outside: folders for their paths. Nothing here is imported by semel itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PYTHON: Final = Path(__file__).parent / "python"
"""For PYTHONPATH: its ``sitecustomize`` is loaded by every Python that starts with it."""
VARIABLE: Final = "SEMEL_REPLAY"
"""Names the JSON file that tells the wrapper what to do; without it nothing is wrapped."""
DELIVERY: Final = "SEMEL_REPLAY_DELIVERY"
"""The delivery that a whole process is about, where each has one of its own."""
