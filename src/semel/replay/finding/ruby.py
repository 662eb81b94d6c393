"""Sidekiq's jobs in Ruby, by careful reading of lines: a class that includes Sidekiq::Job, and its perform."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from semel.replay.finding.candidate import Candidate, Parameter, Value, Watched

_OPENS: Final = re.compile(r"^(?P<space>\s*)(?P<what>class|module)\s+(?P<name>[A-Z]\w*(?:::[A-Z]\w*)*)")
_INCLUDES: Final = re.compile(r"^(?P<space>\s*)include\s+(?:::)?Sidekiq::(?:Job|Worker)\b")
_PERFORM: Final = re.compile(r"^(?P<space>\s*)def\s+perform\b\s*(?P<rest>.*)$")
_QUEUE: Final = re.compile(r"\bsidekiq_options\b.*?\bqueue(?::|['\"]?\s*=>)\s*[:'\"](?P<queue>[\w.-]+)")
_CALL: Final = re.compile(
    r"(?<![\w:.])(?P<object>(?:::)?[A-Z]\w*(?:::[A-Z]\w*)*)(?P<made>\.new(?:\([^()]*\))?)?[.](?P<name>[a-z]\w*[!?]?)"
)
_HTTP: Final = ("Net::HTTP", "HTTParty", "Faraday", "RestClient", "Excon", "Typhoeus", "HTTP", "HTTPX")
_KITS: Final = (
    "Stripe",
    "Twilio",
    "Braintree",
    "Aws",
    "Mailgun",
    "SendGrid",
    "Slack",
    "Adyen",
    "PayPal",
    "Square",
    "Shopify",
    "Postmark",
)
_ACTS: Final = re.compile(
    r"^(?:book|cancel|capture|charge|create|deliver|dispatch|email|issue|mail|notify|pay|post|publish|push|put|refund|"
    r"send|ship|submit|transfer|upload|call|perform)(?:_\w+)?[!]?$"
)
_ROWS: Final = re.compile(r"\b(?:create!?|save!?|update!?|insert_all|upsert)\b")
_SEMEL: Final = re.compile(r"\bsemel_operation\b|\bSemel\b")


def ruby_jobs(text: str, file: str, root: Path) -> Iterator[Candidate]:
    """The Sidekiq classes of one file."""
    lines = _without_comments(text)
    for number, line in enumerate(lines):
        found = _INCLUDES.match(line)
        if found:
            name, start = _class_around(lines, number, len(found["space"]))
            if name:
                yield _candidate(name, lines, start, file, root)


def _candidate(name: str, lines: list[str], start: int, file: str, root: Path) -> Candidate:
    body = lines[start : _end_of(lines, start)]
    queue = next((found["queue"] for line in body if (found := _QUEUE.search(line))), None)
    deliver: dict[str, Value] = {"job_class": name, "worker": _worker(root, file)}
    if queue:
        deliver["queue"] = queue
    place = next((at for at, line in enumerate(body) if _PERFORM.match(line)), None)
    inner = [] if place is None else body[place + 1 : _end_of(body, place)]
    notes = (
        ()
        if place is not None
        else ("The class has no perform of its own: fill in [message], in its order.",)
    )
    return Candidate(
        name=name,
        way="sidekiq",
        place=f"{file}:{start + 1}",
        deliver=deliver,
        parameters=() if place is None else _parameters(body, place),
        watched=tuple(sorted(_watched(inner), key=lambda each: -each.weight)),
        writes=any(_ROWS.search(line) for line in inner),
        notes=notes,
    )


def _without_comments(text: str) -> list[str]:
    """The lines, with those of comments and of what follows ``__END__`` emptied."""
    lines, within = [], False
    for line in text.splitlines():
        if line.startswith("__END__"):
            break
        within = within or line.startswith("=begin")
        lines.append("" if within or line.lstrip().startswith("#") else line)
        within = within and not line.startswith("=end")
    return lines


def _class_around(lines: list[str], number: int, indent: int) -> tuple[str, int]:
    """The class that a line is in, with the modules around it, by the indentation; and where it begins."""
    names: list[str] = []
    start = number
    for at in range(number - 1, -1, -1):
        found = _OPENS.match(lines[at])
        if not found or len(found["space"]) >= indent:
            continue
        if not names:
            if found["what"] != "class":
                return "", number
            start = at
        names.insert(0, found["name"])
        indent = len(found["space"])
        if indent == 0:
            break
    return "::".join(names), start


def _end_of(lines: list[str], start: int) -> int:
    """The line of the ``end`` that closes what this line opens."""
    indent = len(lines[start]) - len(lines[start].lstrip())
    closes = re.compile(rf"^\s{{{indent}}}end\b")
    return next((at for at in range(start + 1, len(lines)) if closes.match(lines[at])), len(lines))


def _parameters(body: list[str], place: int) -> tuple[Parameter, ...]:
    found = _PERFORM.match(body[place])
    rest = found["rest"] if found else ""
    if rest.startswith("("):
        text = " ".join([rest, *body[place + 1 : place + 20]])
        rest = text[1 : _closing(text)]
    parameters = []
    for word in _apart(rest.partition(";")[0]):
        name = re.match(r"(?P<star>[*&]*)(?P<name>\w+)(?P<default>\s*=|:)?", word.strip())
        if name and not name["star"]:
            parameters.append(Parameter(name["name"], "", not name["default"]))
    return tuple(parameters)


def _closing(text: str) -> int:
    deep = 0
    for place, letter in enumerate(text):
        deep += (letter in "([{") - (letter in ")]}")
        if deep == 0:
            return place
    return len(text)


def _apart(text: str) -> list[str]:
    """By the commas that are in no bracket."""
    words, deep = [""], 0
    for letter in text:
        deep += (letter in "([{") - (letter in ")]}")
        if letter == "," and deep == 0:
            words.append("")
        else:
            words[-1] += letter
    return words


def _watched(lines: list[str]) -> Iterator[Watched]:
    seen = set()
    for line in lines:
        for found in _CALL.finditer(line):
            owner, name = found["object"].removeprefix("::"), found["name"]
            call = f"{owner}{'#' if found['made'] else '.'}{name}"
            if name in ("new", "find", "find_by", "where", "get") or owner.startswith(
                ("Rails", "Sidekiq", "Semel")
            ):
                continue
            if call not in seen:
                seen.add(call)
                yield from _weighed(owner, name, call)


def _weighed(owner: str, name: str, call: str) -> Iterator[Watched]:
    if owner.partition("::")[0] in _KITS:
        yield Watched(call, 70, "a provider's kit")
    elif owner in _HTTP:
        yield Watched(call, 50, "a client of HTTP")
    elif _ACTS.match(name):
        yield Watched(call, 60, "by its name")


def _worker(root: Path, file: str) -> list[str]:
    """The command that starts Sidekiq: Rails is found by itself, else it requires a file."""
    command = ["bundle", "exec", "sidekiq"] if (root / "Gemfile").exists() else ["sidekiq"]
    if (root / "config" / "application.rb").exists():
        return command
    boot = next(
        (each for each in ("boot.rb", "app.rb", "config/environment.rb") if (root / each).exists()), file
    )
    return [*command, "-r", f"./{boot}"]
