"""A description as a person names it: a TOML file, or ``module:attribute``. What comes out is complete and can be run."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_type_hints

import msgspec

from semel.errors import ConfigurationError, SemelError
from semel.replay.checking import check, relative_to
from semel.replay.description import Description
from semel.replay.environment import fill_in

_MESSAGES: Final = ("message", "look_alike", "changed")
_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?$", re.DOTALL)
_BY: Final = "callable, command, semel, celery, sqs, sidekiq; count: calls, sql, http"


def read_description(what: str | Path) -> Description:
    """The description in this TOML file, or of this ``module:attribute`` (one, or a function or class that makes it).

    ``${NAME}`` in its texts is the environment's. Raises `ConfigurationError`, which names the place and the field.
    """
    name = str(what)
    if is_file(name):
        path = Path(name).absolute()
        return check(relative_to(path.parent, _from_toml(path)), name)
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ConfigurationError(
            f"{name!r} names no description.",
            remedy="Name a TOML file (semel replay init writes one), or module:attribute.",
        )
    found, folder = _from_module(module, attribute)
    return check(relative_to(folder, fill_in(found, name)), name)


def is_file(name: str) -> bool:
    """Whether it is read as a file, and not as ``module:attribute``."""
    return name.endswith(".toml") or Path(name).is_file()


def _from_toml(path: Path) -> Description:
    try:
        read = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(
            f"There is no file {path.name} in {path.parent}.", remedy="Write it: semel replay init"
        ) from None
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"{path.name} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path.name} is no TOML: {error}.") from error
    return from_builtins(fill_in(read, path.name), path.name)


def from_builtins(read: Mapping[str, Any], source: str) -> Description:
    """A description of what TOML gives; unknown and missing fields are named."""
    try:
        flat = msgspec.convert(dict(read), type=_shape())
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        where = (found and found["where"]) or ""
        what = found["what"] if found else str(error)
        remedy = f"One of: {_BY}." if where.endswith("by") else "The fields are in docs/replay.md."
        raise ConfigurationError(
            f"In {source}{', ' if where else ''}{where}: {what}.", remedy=remedy
        ) from None
    return Description(**{name: getattr(flat, name) for name in flat.__struct_fields__})


def _shape() -> type[msgspec.Struct]:
    """The description without functions, which TOML cannot have."""
    types = get_type_hints(Description)
    fields: list[Any] = []
    for field in msgspec.structs.fields(Description):
        kind: Any = types[field.name]
        if field.name in _MESSAGES:
            kind = dict[str, Any] if field.name == "message" else dict[str, Any] | None
        if field.default_factory is not msgspec.NODEFAULT:
            fields.append((field.name, kind, msgspec.field(default_factory=field.default_factory)))
        elif field.default is not msgspec.NODEFAULT:
            fields.append((field.name, kind, field.default))
        else:
            fields.append((field.name, kind))
    return msgspec.defstruct("Description", fields, kw_only=True, forbid_unknown_fields=True)


def _raised(what: str, error: BaseException) -> ConfigurationError:
    """The user's own code raised."""
    return ConfigurationError(
        f"{what}: {type(error).__name__}: {error}.",
        holds="Nothing was sent.",
        remedy="See where: semel --debug …",
    )


def _from_module(module: str, attribute: str) -> tuple[Description, Path]:
    """The description, and the folder of the module that has it."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded = importlib.import_module(module)
    except SemelError:
        raise
    except (Exception, SystemExit) as error:
        raise _raised(f"Importing {module} failed", error) from error
    found: Any = loaded
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if callable(found):
        try:
            found = found()
        except SemelError:
            raise
        except (Exception, SystemExit) as error:
            raise _raised(f"{attribute} of {module} failed", error) from error
    if not isinstance(found, Description):
        what = "is not there" if found is None else f"gives a {type(found).__name__}"
        raise ConfigurationError(
            f"{attribute} of {module} {what}.", remedy="Name a semel.replay.Description, or what makes one."
        )
    return found, Path(cast("str", getattr(loaded, "__file__", None) or here)).parent
