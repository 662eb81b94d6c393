"""What the server is started with, over what its postgresql.conf says."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

DEFAULT_PORT: Final = 5432
USER: Final = "semel"
DATABASE: Final = "semel"

THROWAWAY_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({"fsync": "off", "full_page_writes": "off"})
"""For tests: a crash of the machine may lose all, a crash of PostgreSQL alone loses no commit."""


def as_options(settings: Mapping[str, str]) -> list[str]:
    """``-c name=value`` for each setting."""
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def server_settings(socket_directory: str, port: int | None, chosen: Mapping[str, str]) -> dict[str, str]:
    """The launcher's, then the user's, then where it listens, which nobody overrides: loopback at most."""
    return {
        "cluster_name": "semel",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_line_prefix": "%m [%p] ",
        # Not "$user" first: that is semel's schema here, by the user's name, and the user's own tables go elsewhere.
        "search_path": "public",
        **chosen,
        "listen_addresses": "" if port is None else "127.0.0.1",
        "port": str(DEFAULT_PORT if port is None else port),
        "unix_socket_directories": socket_directory,
        "unix_socket_permissions": "0700",
    }
