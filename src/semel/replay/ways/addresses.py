"""Addresses as they may be shown and kept: without who connects, and with what."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown_address(url: str, port: int | None = None) -> str:
    """``scheme://host:port/path``: without user, password and options. ``port`` is the scheme's own."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    found = parts.port or port
    return f"{parts.scheme}://{host}{f':{found}' if found else ''}{parts.path}"
