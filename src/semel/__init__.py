"""Background jobs on PostgreSQL, stored in the transaction that caused them; and a guard against acting twice.

Its names are those of `semel.exports`, which is loaded when one is first asked for (PEP 562). So pytest's plugin, the
command line, and whoever imports a part of semel do not load all of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from semel.version import __version__ as __version__

if TYPE_CHECKING:
    from semel import exports
    from semel.exports import *  # noqa: F403

    __all__ = exports.__all__
else:

    def __getattr__(name):
        if name == "__all__" or not name.startswith("_"):
            exports = import_module("semel.exports")
            globals().update({each: getattr(exports, each) for each in ("__all__", *exports.__all__)})
            if name in globals():
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted(import_module("semel.exports").__all__)
