"""How a note was asked for: kept in its first line, so that a check asks for the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from semel.errors import ConfigurationError

_LINE: Final = re.compile(r"<!-- semel note (?P<said>\{.*\}) -->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What `semel note` was told, as far as code decides what it answers."""

    target: str
    """``module:name``."""
    example: Mapping[str, Any] | None = None
    """The arguments of the worked example, by name."""
    longest_redelivery: str | None = None
    """How late a message can still come, in words."""
    modules: tuple[str, ...] = ()
    """Further modules to look for ways in."""

    def to_line(self) -> str:
        """One comment, in Markdown and in HTML."""
        said = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        text = json.dumps(said, ensure_ascii=True)
        safe = text.replace("--", "-\\u002d").replace(">", "\\u003e")
        return f"<!-- semel note {safe} -->"

    def command(self) -> str:
        """The words to type."""
        words = ["semel note", self.target]
        if self.example is not None:
            words.append("--example '" + json.dumps(self.example).replace("'", "'\\''") + "'")
        if self.longest_redelivery is not None:
            words.append(f'--longest-redelivery "{self.longest_redelivery}"')
        words += [f"--module {module}" for module in self.modules]
        return " ".join(words)


def read_origin(text: str) -> Origin | None:
    """What a written note says of itself; None where it is none."""
    found = _LINE.search(text)
    if found is None:
        return None
    try:
        said = json.loads(found["said"])
        known = {each.name for each in fields(Origin)}
        said = {name: tuple(v) if isinstance(v, list) else v for name, v in said.items() if name in known}
        return Origin(**said)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            "The note's first line cannot be read.", remedy="Write it anew: semel note MODULE:NAME --output …"
        ) from error
