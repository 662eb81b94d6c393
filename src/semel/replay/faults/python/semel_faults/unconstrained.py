"""The guard as it would be without its unique constraint: its claim is a plain insert.

On PostgreSQL a `Row()` asks for a lock first, so as not to wait for the constraint: that is left out as well.
"""

from __future__ import annotations

import functools
import re
from types import ModuleType
from typing import Any

_ON_CONFLICT = re.compile(r"(WHERE CASE WHEN current_setting\(.*)?ON CONFLICT \(.*?\) DO NOTHING", re.DOTALL)


def hook(module: ModuleType) -> None:
    """Take the clause that asks for the constraint out of the statements: there is no constraint to ask for."""
    catalogue = module.Catalogue
    fill = catalogue.fill

    @functools.wraps(fill)
    def fill_plain(self: Any, raw: str, **literals: str) -> str:
        return _ON_CONFLICT.sub("", str(fill(self, raw, **literals)))

    catalogue.fill = fill_plain
