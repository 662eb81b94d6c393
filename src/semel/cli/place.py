"""Where a command works: the application it is told of, and the database with its schema."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import typer

if TYPE_CHECKING:
    from semel.queue.app import App
    from semel.store.drivers.psycopg3 import PsycopgSession

APP: Final = "SEMEL_APP"
DEFAULT_SCHEMA: Final = "semel"
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Place:
    """A database and a schema in it."""

    url: str
    schema: str


def find_app(given: str | None) -> str:
    """Where the application is: as given, else ``SEMEL_APP``."""
    from semel.errors import ConfigurationError

    found = given or os.environ.get(APP)
    if not found:
        raise ConfigurationError(
            "No application was given.",
            remedy=f"Name it as module:attribute, such as shop.jobs:app, or set {APP}.",
        )
    return found


def load_app(name: str) -> App:
    """Import an application named ``module:attribute``; the working directory is searched first."""
    from semel.queue.app import App

    return load(name, App, "semel.App")


def load(name: str, kind: type[Kind], shown: str) -> Kind:
    """Import what is named ``module:attribute``; the working directory is searched first."""
    from semel.errors import ConfigurationError

    module_name, colon, attribute = name.partition(":")
    if not module_name or not colon or not attribute:
        base, _, last = name.rpartition(".")
        meant = f"{base}:{last}" if base and not colon else "module:attribute, such as shop.jobs:app"
        raise ConfigurationError(f"{name!r} is not written as module:attribute.", remedy=f"Write {meant}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: object = _import(module_name)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if found is None or not isinstance(found, kind):
        what = "is not there" if found is None else f"is a {type(found).__name__}, not a {shown}"
        raise ConfigurationError(
            f"{attribute} of {module_name} {what}.", remedy=f"Check {module_name}, or name another attribute."
        )
    return found


def _import(name: str) -> object:
    from semel.errors import ConfigurationError, SemelError

    try:
        return importlib.import_module(name)
    except SemelError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigurationError(f"Importing {name} failed: {error}.", remedy="Install it.") from error
        raise ConfigurationError(
            f"There is no module {name}.",
            remedy=f"Run this where the module can be imported from; {Path.cwd()} was searched.",
        ) from error
    except Exception as error:
        raise ConfigurationError(
            f"Importing {name} failed: {type(error).__name__}: {error}.", remedy="See where: semel --debug …"
        ) from error


def find_place(database: str | None, schema: str | None, *, migrated: bool = True) -> Place:
    """The database as given, else the one of the application that ``SEMEL_APP`` names, else the embedded one.

    The embedded server is started for it, and has its tables made unless ``migrated`` is false.
    """
    if database:
        return Place(database, schema or DEFAULT_SCHEMA)
    if os.environ.get(APP):
        app = load_app(find_app(None))
        return Place(app.url, schema or app.catalogue.schema)
    from semel.embedded import ensure_running

    url, chosen = ensure_running(), schema or DEFAULT_SCHEMA
    typer.echo("Using the embedded PostgreSQL, since no --database was given.", err=True)
    if migrated:
        from semel.store.migrate import migrate_database

        migrate_database(url, schema=chosen)
    return Place(url, chosen)


@contextmanager
def open_place(database: str | None, schema: str | None) -> Iterator[PsycopgSession]:
    """A connection to it; raises SchemaMismatch where this code must not work on its tables."""
    from semel.store.migrate import check_schema, schema_state
    from semel.store.run import run
    from semel.store.session import open_session

    place = find_place(database, schema)
    with open_session(place.url, schema=place.schema, name="semel cli") as session:
        check_schema(run(schema_state(place.schema), session))
        yield session
