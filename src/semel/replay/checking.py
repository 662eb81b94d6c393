"""Whether a description is complete and makes sense: what would show nothing is refused before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from semel.core.durations import to_timedelta
from semel.errors import ConfigurationError
from semel.replay.description import (
    CalledFunction,
    CeleryTask,
    Command,
    CountHttp,
    CountSql,
    Description,
    SemelJob,
    SidekiqJob,
    SqsQueue,
)
from semel.replay.expectations import POLICIES
from semel.replay.messages import changed_of, look_alike_of, message_of

TODO: Final = "TODO"
"""How a text begins that a person has still to fill in."""
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*")
_PARAMETER: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
_IN_BRACES: Final = re.compile(r"\{(\w+)\}")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def check(description: Description, source: str) -> Description:
    """The same description. Raises `ConfigurationError` with everything that is wrong with it."""
    wrong = [*_unfilled(description)] or [*_wrong(description)]
    if wrong:
        listed = "; ".join(wrong)
        raise ConfigurationError(
            f"In {source}: {listed}.", holds="Nothing was sent.", remedy="The fields are in docs/replay.md."
        )
    return description


def relative_to(folder: Path, description: Description) -> Description:
    """The same with the SQLite files of ``count`` and ``guard`` found from this folder."""
    count, guard = description.count, description.guard
    if isinstance(count, CountSql) and count.database:
        count = msgspec.structs.replace(count, database=_from(folder, count.database))
    if guard.database:
        guard = msgspec.structs.replace(guard, database=_from(folder, guard.database))
    return msgspec.structs.replace(description, count=count, guard=guard)


def _from(folder: Path, database: str) -> str:
    if _SCHEME.match(database) or "=" in database or database.startswith(TODO):
        return database
    return str(folder / database)


def _unfilled(value: Any, where: str = "") -> Iterator[str]:
    match value:
        case str() if value.lstrip().startswith(TODO):
            yield f"{where} is still to be filled in ({value.strip()})"
        case msgspec.Struct():
            for name in value.__struct_fields__:
                yield from _unfilled(getattr(value, name), f"{where}.{name}" if where else name)
        case dict():
            for name, each in value.items():
                yield from _unfilled(each, f"{where}.{name}")
        case list():
            for place, each in enumerate(value):
                yield from _unfilled(each, f"{where}[{place}]")


def _wrong(description: Description) -> Iterator[str]:
    if not re.fullmatch(r"[\w.-]{1,100}", description.name):
        yield "name is letters, digits, -, _ and . (it becomes the name of files)"
    if description.rounds < 1:
        yield "rounds is at least 1"
    yield from _wrong_times(description)
    yield from _wrong_delivery(description)
    yield from _wrong_watch(description)
    yield from _wrong_guard(description)
    yield from _wrong_messages(description)


def _wrong_times(description: Description) -> Iterator[str]:
    times = {
        "patience": description.patience,
        "redelivery": description.redelivery,
        "watch.dwell": description.watch.dwell,
        "guard.lease": description.guard.lease,
    }
    for name, value in times.items():
        try:
            if value is not None:
                to_timedelta(value, name=name)
        except ConfigurationError as error:
            yield error.happened.rstrip(".")


def _wrong_delivery(description: Description) -> Iterator[str]:
    for where, deliver in (
        ("deliver", description.deliver),
        ("control.deliver", description.control.deliver),
    ):
        match deliver:
            case CalledFunction(function=name):
                yield from _not_in_module(f"{where}.function", name)
            case SemelJob(app=name) | CeleryTask(app=name):
                yield from _not_in_module(f"{where}.app", name)
            case Command(command=[]):
                yield f"{where}.command is empty"
            case SqsQueue(worker=[]) | SidekiqJob(worker=[]):
                yield f"{where}.worker, the command that starts the consumer, is empty"
    control = description.control
    if control.none is not None and (control.deliver is not None or control.environment):
        yield "control.none says why there is no control, so there is no control.deliver or control.environment"
    if control.none is not None and not control.none.strip():
        yield "control.none gives a reason"


def _not_in_module(where: str, name: str) -> Iterator[str]:
    if not re.fullmatch(r"[\w.]+:[\w.]+", name):
        yield f"{where} is {name!r}, not module:name"


def _wrong_watch(description: Description) -> Iterator[str]:
    watch = description.watch
    if (watch.call is None) == (watch.http is None):
        yield "watch has call or http: one of them"
    if watch.http is None and (watch.variable, watch.answer, watch.only) != (None, None, None):
        yield "watch.variable, answer and only go with watch.http"
    if watch.call is not None and not re.fullmatch(r"[\w.:]+([.#][\w?!]+)", watch.call):
        yield f"watch.call is {watch.call!r}, not a dotted name such as shop.provider.charge (Ruby: Class#method)"
    if watch.http is not None and not re.match(r"https?://[^/]", watch.http):
        yield f"watch.http is {watch.http!r}, not an address that begins with http:// or https://"
    if watch.only is not None:
        try:
            re.compile(watch.only)
        except re.error as error:
            yield f"watch.only is no regular expression: {error}"


def _wrong_guard(description: Description) -> Iterator[str]:
    guard = description.guard
    if guard.operation is not None:
        yield from _not_in_module("guard.operation", guard.operation)
        if guard.policy is not None or guard.table is not None or guard.columns:
            yield "guard.operation says it all: leave out guard.policy, table and columns"
    if guard.policy is not None and guard.policy not in POLICIES:
        yield f"guard.policy is {guard.policy!r}: one of {', '.join(POLICIES)}"
    if (guard.table is None) != (not guard.columns):
        yield "guard.table and guard.columns, the unique constraint, go together"
    if guard.policy == "row" and not isinstance(description.count, CountSql):
        yield 'a row is counted where it is committed: count.by = "sql"'


def _wrong_messages(description: Description) -> Iterator[str]:
    try:
        one, two = message_of(description, 1), message_of(description, 2)
        alike, changed = look_alike_of(description, 1, 2), changed_of(description, 1)
    except Exception as error:  # the description's own function
        yield f"making a message raised {type(error).__name__}: {error}"
        return
    if one == two:
        yield "message is the same for each operation: put {n} where its number belongs"
    if alike is None:
        yield "look_alike is not given: say what differs in a message that looks alike and is another operation"
    elif alike == one:
        yield "look_alike makes the same message"
    if changed is not None and changed == one:
        yield "changed makes the same message"
    for where, name in _used(description):
        if name not in one:
            yield f"{where} names {name!r}, which is no field of message"


def _used(description: Description) -> Iterator[tuple[str, str]]:
    """The fields of the message by which effects are counted."""
    match description.count:
        case CountSql(query=query):
            for name in dict.fromkeys(_PARAMETER.findall(_QUOTED.sub("", query))):
                yield "count.query", name
        case CountHttp(url=url):
            for name in dict.fromkeys(_IN_BRACES.findall(url)):
                yield "count.url", name
