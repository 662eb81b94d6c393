"""Answers in a file: TOML or JSON, ``question = "answer"``; a template says with each question why it matters."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from semel.errors import ConfigurationError
from semel.fit.questions import QUESTIONS, UNKNOWN, Question
from semel.fit.verdict import check_answers


def read_answers(path: Path) -> dict[str, str]:
    """The answers of a file. Raises ConfigurationError for one that cannot be read, or says what is no answer."""
    try:
        text = path.read_text("utf-8")
        found: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", remedy=f"Write one: semel fit --write-answers {path}"
        ) from error
    except (ValueError, UnicodeError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigurationError(
            f"{path} is no {kind}: {error}.", remedy="Correct it, or write it anew."
        ) from error
    if not isinstance(found, dict):
        raise ConfigurationError(
            f"{path} holds no answers by name.", remedy='Such as {"identifier": "stable"}.'
        )
    return check_answers(found)


def to_template(answers: Mapping[str, str], *, as_json: bool) -> str:
    """Every question with what is known of its answer, else ``unknown``."""
    known = {question.id: answers.get(question.id, UNKNOWN) for question in QUESTIONS}
    if as_json:
        return json.dumps(known, indent=2, ensure_ascii=False) + "\n"
    return "\n".join(line for question in QUESTIONS for line in _entry(question, known[question.id]))


def _entry(question: Question, answer: str) -> Iterator[str]:
    yield f"# {question.text}"
    yield f"# {question.why}"
    yield f"# {question.example}"
    if question.when:
        asked = ", ".join(
            f"{name} is {' or '.join(sorted(wanted))}" for name, wanted in question.when.items()
        )
        yield f"# Only where {asked}."
    if question.kind == "choice":
        yield from (f"#   {choice}: {meaning}" for choice, meaning in question.choices.items())
    elif question.kind == "duration":
        yield '#   such as "45 s", "10 min", "14 days"; or unknown'
    yield f"{question.id} = {json.dumps(answer, ensure_ascii=False)}"
    yield ""
