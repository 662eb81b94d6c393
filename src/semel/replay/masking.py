"""A description as it may be written down: without what lets anybody in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from semel.replay.description import Description
from semel.replay.results import CheckResult, Run

_USERINFO: Final = re.compile(r"(?<=://)[^/?#\s]*@")
_GIVEN: Final = re.compile(
    r"(?i)\b(\w*(?:password|passwd|secret|token|api_?key|access_?key|authorization)\w*)"
    r"([\"']?\s*[=:]\s*)('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s,;&]+(?:(?<=basic)\s+\S+|(?<=bearer)\s+\S+)?)"
)
_SECRET_NAME: Final = re.compile(r"(?i)password|passwd|secret|token|key|credential|authorization|cookie|dsn")
_SHORTEST: Final = 6


def masked(description: Description) -> dict[str, Any]:
    """The description as plain data. Passwords, and values of the environment that look like them, are not in it.

    Of variables given to the workers there are only the names.
    """
    plain: dict[str, Any] = _plain(description, _secrets(), "")
    return plain


def masked_run(run: Run, description: Description) -> Run:
    """The run as reports may show it: what workers wrote, and what was raised in them, without passwords.

    Values that the description gives to the workers under a secret's name are masked as the environment's are.
    """
    secrets = _secrets({**os.environ, **description.environment, **description.control.environment})
    runs = tuple(
        msgspec.structs.replace(each, checks=tuple(_masked_check(check, secrets) for check in each.checks))
        for each in run.runs
    )
    masked_all: Run = msgspec.structs.replace(run, runs=runs)
    return masked_all


def _masked_check(check: CheckResult, secrets: dict[str, str]) -> CheckResult:
    evidence = check.evidence
    evidence.logs = [_text(each, secrets) for each in evidence.logs]
    evidence.notes = [_text(each, secrets) for each in evidence.notes]
    evidence.records = [
        msgspec.structs.replace(each, error=each.error and _text(each.error, secrets))
        for each in evidence.records
    ]
    if evidence.unfinished is not None:
        evidence.unfinished = _text(evidence.unfinished, secrets)
    evidence.events = [
        msgspec.structs.replace(each, detail=_plain(each.detail, secrets, "detail"))
        for each in evidence.events
    ]
    shown: CheckResult = msgspec.structs.replace(
        check, reasons=tuple(_text(each, secrets) for each in check.reasons)
    )
    return shown


def mask(text: str) -> str:
    """A text without passwords, and without values of the environment that look like them."""
    return _text(text, _secrets())


def _secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Values of an environment that must not be written, with the name that stands for each; the longest first."""
    found = {
        value: name
        for name, value in (os.environ if environment is None else environment).items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST
    }
    return dict(sorted(found.items(), key=lambda each: -len(each[0])))


def _plain(value: Any, secrets: dict[str, str], name: str) -> Any:
    match value:
        case str():
            return _text(value, secrets)
        case msgspec.Struct():
            tag = value.__struct_config__.tag
            shown = {"by": tag} if tag else {}
            return shown | {
                each: _plain(getattr(value, each), secrets, each) for each in value.__struct_fields__
            }
        case dict() if name == "environment":
            return dict.fromkeys(value, "…")
        case dict():
            return {
                str(each): "…" if _hidden(each, inner) else _plain(inner, secrets, str(each))
                for each, inner in value.items()
            }
        case list() | tuple():
            return [_plain(each, secrets, name) for each in value]
        case _ if callable(value):
            return f"{value.__module__}:{getattr(value, '__qualname__', type(value).__name__)}"
        case _:
            return value


def _hidden(name: object, value: object) -> bool:
    return isinstance(value, str) and bool(
        re.search(r"(?i)password|secret|token|authorization|cookie", str(name))
    )


def _text(text: str, secrets: dict[str, str]) -> str:
    shown = _GIVEN.sub(r"\1\2…", _USERINFO.sub("…@", text))
    for value, name in secrets.items():
        shown = shown.replace(value, f"${{{name}}}")
    return shown
