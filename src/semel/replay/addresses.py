"""Addresses as they may be shown and written down: without user's secrets."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

_SECRET = re.compile(r"(password\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def without_secrets(address: str) -> str:
    """The address without password and query; a libpq string without its password; a path as it is."""
    if not _URL.match(address):
        return _SECRET.sub(r"\1…", address)
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    user = parts.username or ""
    return urlunsplit((parts.scheme, f"{user}@{host}" if user else host, parts.path, "", ""))
