"""A PostgreSQL of semel's own, for development and tests; production brings its own server.

``ensure_running()`` is what an application without a database URL calls; ``EmbeddedServer`` is one server
with its directory. The launcher runs any PostgreSQL's programs, as a child or in the background, as root or
not, and imports no driver.
"""

from semel.embedded.binaries import Binaries, find_binaries
from semel.embedded.place import default_directory
from semel.embedded.server import EmbeddedServer, ServerStatus, ensure_running
from semel.embedded.settings import THROWAWAY_SETTINGS

__all__ = [
    "THROWAWAY_SETTINGS",
    "Binaries",
    "EmbeddedServer",
    "ServerStatus",
    "default_directory",
    "ensure_running",
    "find_binaries",
]
