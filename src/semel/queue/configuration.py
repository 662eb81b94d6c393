"""What an application is told: its settings as people write them, and where its database is."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from semel.core.durations import to_timedelta
from semel.core.settings import Settings
from semel.errors import ConfigurationError

logger = logging.getLogger("semel.app")

VARIABLE = "SEMEL_DATABASE_URL"


def change_settings(settings: Settings, overrides: Mapping[str, Any]) -> Settings:
    """``settings`` with some fields replaced; durations may be seconds or words."""
    known = {each.name: getattr(settings, each.name) for each in fields(settings)}
    changed: dict[str, Any] = {}
    for name, value in overrides.items():
        if name not in known:
            raise ConfigurationError(
                f"There is no setting {name!r}.", remedy=f"There are: {', '.join(known)}."
            )
        if isinstance(known[name], timedelta):
            changed[name] = to_timedelta(value, name=name)
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"{name} is {value!r}: give a whole number from 1.")
        else:
            changed[name] = value
    return replace(settings, **changed)


class Address:
    """Where the database is: as given, as the environment says, or the embedded server, which is started for
    it."""

    def __init__(self, given: str | None, schema: str) -> None:
        self._given = given
        self._schema = schema
        self._embedded: str | None = None
        self._lock = threading.Lock()

    def point_to(self, url: str) -> None:
        """Take this URL instead, from the next connection on."""
        self._given = url

    def resolve(self) -> str:
        """The URL. Starting and migrating the embedded server happens once."""
        url = self._given or os.environ.get(VARIABLE)
        if url:
            return url
        with self._lock:
            if self._embedded is None:
                self._embedded = self._start()
            return self._embedded

    def _start(self) -> str:
        from semel.embedded import ensure_running
        from semel.store.migrate import migrate_database

        url = ensure_running()
        migrate_database(url, schema=self._schema)
        logger.warning(
            "No database was given, so jobs go to the embedded PostgreSQL at %s. It is for development: "
            "set %s, or App(database=…), in production.",
            url,
            VARIABLE,
        )
        return url
