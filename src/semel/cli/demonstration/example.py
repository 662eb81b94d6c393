"""Finds and loads the applications that the demo runs: in the source tree's examples/, or as the wheel brings them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import semel
from semel.errors import ConfigurationError

LOCATION: Final = "signup.jobs:app"
SPEED_VARIABLE: Final = "SIGNUP_SPEED"
MAIL_VARIABLE: Final = "SIGNUP_SMTP"
SPEED: Final = 25
"""How much faster than in earnest the demo's time runs."""


class User(Protocol):
    """A row of the application's table."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def email(self) -> str: ...


@dataclass(frozen=True)
class Example:
    """The application, seen from outside: its folder and the functions that the demo calls."""

    folder: Path
    jobs: Any
    users: Any
    registration: Any

    def create_tables(self) -> None:
        with self.jobs.connect() as connection:
            self.users.create_tables(connection)

    def sign_up(self, connection: Any, name: str, email: str) -> User:
        user: User = self.registration.sign_up(connection, name, email)
        return user

    def list_users(self) -> Sequence[User]:
        with self.jobs.connect() as connection:
            users: Sequence[User] = self.users.list_users(connection)
        return users


def find_folder(name: str) -> Path:
    """The folder that holds the example of that name, a package."""
    package = Path(semel.__file__).parent
    for folder in (package / "examples", package.parent.parent / "examples"):
        if (folder / name / "jobs.py").is_file():
            return folder
    raise ConfigurationError(
        f"The application {name} that the demo runs is not there.",
        remedy="Install the package anew: pip install --force-reinstall 'semel[demo]'",
    )


def load_modules(name: str, modules: Sequence[str], told: Mapping[str, str]) -> tuple[Path, list[Any]]:
    """Import some modules of an example that is told something by variables; answers its folder, and them."""
    folder = find_folder(name)
    os.environ.update(told)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder, [importlib.import_module(f"{name}.{module}") for module in modules]


def load_example(database: str) -> Example:
    """Import the sign-up application, at the demo's speed, and point it to a database."""
    names = ("jobs", "users", "registration")
    folder, modules = load_modules("signup", names, {SPEED_VARIABLE: str(SPEED)})
    example = Example(folder, *modules)
    example.jobs.app.point_to(database)
    return example
