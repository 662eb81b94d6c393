"""What makes a Ruby process load the wrapper, without a change to its code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FAULTS: Final = Path(__file__).parent.parent / "faults" / "ruby"
"""The folder that ``semel/faults`` is found in; the gem has a copy."""
_LOAD: Final = "-rsemel/faults"


def loading_faults(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a Ruby worker: what it had for Ruby stays, behind ours."""
    options = environment.get("RUBYOPT", "")
    return {
        **environment,
        "RUBYOPT": options if _LOAD in options.split() else f"{_LOAD} {options}".strip(),
        "RUBYLIB": os.pathsep.join(filter(None, (str(FAULTS), environment.get("RUBYLIB", "")))),
    }
