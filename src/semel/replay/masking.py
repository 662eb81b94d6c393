"""A description as it may be written down: without what lets anybody in."""

from __future__ import annotations

import os
import re
from typing import Any, Final

import msgspec

from semel.replay.description import Description

_USERINFO: Final = re.compile(r"(?<=://)[^/@\s]*@")
_GIVEN: Final = re.compile(
    r"(?i)\b(\w*(?:password|passwd|secret|token|api_?key|access_?key|authorization)\w*)"
    r"(\s*[=:]\s*)('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s,;&]+(?:(?<=basic)\s+\S+|(?<=bearer)\s+\S+)?)"
)
_SECRET_NAME: Final = re.compile(r"(?i)password|passwd|secret|token|key|credential|authorization|cookie|dsn")
_SHORTEST: Final = 6


def masked(description: Description) -> dict[str, Any]:
    """The description as plain data. Passwords, and values of the environment that look like them, are not in it.

    Of variables given to the workers there are only the names.
    """
    plain: dict[str, Any] = _plain(description, _secrets(), "")
    return plain


def mask(text: str) -> str:
    """A text without passwords, and without values of the environment that look like them."""
    return _text(text, _secrets())


def _secrets() -> dict[str, str]:
    """Values of this environment that must not be written, with the name that stands for each; the longest first."""
    found = {
        value: name
        for name, value in os.environ.items()
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
