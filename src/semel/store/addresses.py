"""Where something is, as it may be shown and kept: without a name of a user, a password or an option."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from semel.errors import ConfigurationError

_SCHEME: Final = re.compile(r"([a-z][a-z0-9.-]*)(\+[\w.+-]+)?://", re.IGNORECASE)
_KEYS: Final = re.compile(r"\s*\w+\s*=")


def plain_address(text: str) -> str:
    """The address alone, so that two ways to write it come to the same: no credentials, no driver, no options.

    A PostgreSQL that is not named in it whole is found as libpq does, by ``PGHOST`` and the others.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _postgresql(text) if _KEYS.match(text) else f"sqlite:///{Path(text).absolute()}"
    name = scheme[1].lower()
    match name:
        case "postgresql" | "postgres":
            return _postgresql(f"postgresql://{text[scheme.end() :]}")
        case "sqlite":
            path = unquote(text[scheme.end() :].partition("?")[0]).removeprefix("/")
            return f"sqlite:///{Path(path).absolute()}"
        case _:
            return _url("mysql" if name == "mariadb" else name, text[scheme.end() :])


def _postgresql(text: str) -> str:
    try:
        parts = conninfo_to_dict(text)
    except ProgrammingError as error:
        raise ConfigurationError(
            "This is no address of a PostgreSQL.", remedy="It begins with postgresql://."
        ) from error

    def part(name: str, variable: str, default: str) -> str:
        return str(parts.get(name) or os.environ.get(variable) or default)

    host = part("hostaddr", "PGHOSTADDR", "") or part("host", "PGHOST", "localhost")
    user = part("user", "PGUSER", "")
    service = part("service", "PGSERVICE", "")
    found = f"postgresql://{quote(host, safe=',')}:{part('port', 'PGPORT', '5432')}/{part('dbname', 'PGDATABASE', user)}"
    return f"{found}?service={quote(service)}" if service else found


def _url(scheme: str, rest: str) -> str:
    parts = urlsplit(f"{scheme}://{rest}")
    hosts = parts.netloc.rpartition("@")[2].lower()
    return f"{scheme}://{hosts}{parts.path.rstrip('/')}"
