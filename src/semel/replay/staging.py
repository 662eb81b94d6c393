"""What a replay may write to: only what a person declared as staging, once for each target, in ``.semel/staging.toml``."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from semel.errors import ConfigurationError, NotStaging
from semel.replay.description import CalledFunction, Command, CountHttp, CountSql, Description
from semel.replay.masking import mask
from semel.store.addresses import plain_address

FILE: Final = Path(".semel") / "staging.toml"
DATABASE: Final = "SEMEL_DATABASE_URL"
_FUNCTION: Final = "function "
_COMMAND: Final = "command "
_HEAD: Final = """\
# What semel replay may send messages to, and kill workers of. Each was declared by: semel replay DESCRIPTION --staging
"""


def targets_of(
    description: Description, way: Mapping[str, str], *, guard_database: str | None = None
) -> dict[str, str]:
    """Everything that this replay would write to or count in, by what it is: the way's targets, and the databases.

    ``guard_database`` is the one that the guarded function itself names. A function or a command is a target too: nobody
    knows what it writes to.
    """
    found = dict(way)
    count, guard, watch = description.count, description.guard, description.watch
    match description.deliver:
        case CalledFunction(function=name):
            found["function"] = f"{_FUNCTION}{name}"
        case Command(command=words):
            found["command"] = f"{_COMMAND}{mask(' '.join(words))}"
    if watch.http is not None and watch.answer is None:
        _add(found, "outside system", watch.http)
    if isinstance(count, CountSql):
        _add(found, "database of count", count.database or os.environ.get(DATABASE))
    if isinstance(count, CountHttp):
        _add(found, "address of count", count.url.partition("{")[0].partition("?")[0])
    known = guard.database or guard_database
    if known or guard.table:
        _add(found, "database of guard", known or os.environ.get(DATABASE))
    return {what: _plain(address) for what, address in found.items()}


def shared_of(targets: Mapping[str, str]) -> list[str]:
    """Those of `targets_of` where two replays at once would meddle: what delivers, and where the guard is.

    A function or a command has deliveries of its own, and effects are counted by operation.
    """
    counted = ("outside system", "database of count", "address of count")
    return [
        address
        for what, address in targets.items()
        if what not in counted and not address.startswith((_FUNCTION, _COMMAND))
    ]


def _plain(address: str) -> str:
    return address if address.startswith((_FUNCTION, _COMMAND)) else plain_address(address)


def _add(found: dict[str, str], what: str, address: str | None) -> None:
    if address is None:
        raise ConfigurationError(
            f"The {what} is not known.",
            holds="Nothing was sent.",
            remedy=f"Give database in the description, or set {DATABASE}.",
        )
    found[what] = address


def project_of(folder: Path) -> Path:
    """The nearest folder upwards that is a project (``pyproject.toml``, ``.git``), else this one."""
    for each in (folder, *folder.parents):
        if (each / "pyproject.toml").exists() or (each / ".git").exists():
            return each
    return folder


def read_declared(project: Path) -> dict[str, datetime]:
    """The addresses that were declared there, and when."""
    path = project / FILE
    try:
        listed = tomllib.loads(path.read_text("utf-8")).get("target", [])
        return {str(each["address"]): each["declared"] for each in listed}
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeError, LookupError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}.", holds="Nothing was sent.", remedy="Mend it, or delete it."
        ) from error


def declare(project: Path, targets: Mapping[str, str], *, now: datetime | None = None) -> Path:
    """Declare these as staging, beside what was; those that were keep their date. Answers the file."""
    when = now or datetime.now(UTC)
    addresses = {_plain(each): when for each in targets.values()} | read_declared(project)
    lines = [_HEAD]
    lines += [
        f"[[target]]\naddress = {_quoted(address)}\ndeclared = {_moment(declared)}\n"
        for address, declared in sorted(addresses.items())
    ]
    path = project / FILE
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as new:
        new.write("\n".join(lines))
    Path(new.name).chmod(0o644)
    Path(new.name).replace(path)
    return path


def require_staging(
    project: Path, targets: Mapping[str, str], *, command: str = "semel replay DESCRIPTION"
) -> None:
    """Raises `NotStaging` where one of these was never declared. An address on this machine is no exception."""
    declared = read_declared(project)
    plain = {what: _plain(address) for what, address in targets.items()}
    missing = {what: address for what, address in plain.items() if address not in declared}
    if missing:
        listed = ", ".join(
            address if address.startswith((_FUNCTION, _COMMAND)) else f"{what} {address}"
            for what, address in sorted(missing.items())
        )
        raise NotStaging(
            f"Not declared as staging: {listed}.",
            holds="Nothing was sent.",
            remedy=f"A replay sends messages and kills workers. If this is staging, declare it: {command} --staging",
        )


def refuse_foreign(foreign: Sequence[str], *, shared: bool) -> None:
    """Raises `NotStaging` where a target holds what is not this replay's, unless that was allowed."""
    if foreign and not shared:
        raise NotStaging(
            f"There is other traffic: {'; '.join(foreign)}.",
            holds="Nothing was sent.",
            remedy="Replay on a broker and a database of their own, or allow it: --shared",
        )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _moment(value: Any) -> str:
    return value.astimezone(UTC).isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)
