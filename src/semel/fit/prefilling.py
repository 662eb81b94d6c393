"""The answers that the code of a guarded function gives by itself."""

from __future__ import annotations

from typing import Any

from semel.core.durations import describe, to_timedelta
from semel.core.effects import AcceptDuplicate, AcceptMiss, Effect, Hold, Lookup, ProviderKey, Row
from semel.guard.guarded import Guarded


def answers_from(guarded: Guarded[..., Any]) -> dict[str, str]:
    """What is declared. Whether it is true, only people know: they are asked all the same, with this filled in."""
    declaration = guarded.declaration
    answers = {
        "job": declaration.job_type,
        "key_plain": "yes",  # what makes no key is refused
        "database": guarded.place.dialect,
        "longest_run": describe(declaration.longest_run),
    }
    if declaration.secret is not None:
        answers["personal"] = "yes"
    return answers | _of_effect(declaration.effect)


def _of_effect(effect: Effect) -> dict[str, str]:
    match effect:
        case Row():
            return {"effect": "rows", "policy": "row"}
        case ProviderKey(window=window, then=then):
            found = {"provider_key": "yes", "provider_window": describe(window), "policy": "provider_key"}
            return found | (_of_lookup(then) if isinstance(then, Lookup) else {})
        case Lookup():
            return _of_lookup(effect) | {"policy": "lookup"}
        case AcceptDuplicate():
            return {"duplicate_ok": "yes", "policy": "accept_duplicate"}
        case AcceptMiss():
            return {"miss_ok": "yes", "policy": "accept_miss"}
        case Hold():
            return {}  # the default: nobody need have chosen it
    return {}


def _of_lookup(effect: Lookup) -> dict[str, str]:
    return {"lookup": "yes", "lookup_settle": describe(to_timedelta(effect.settle, name="settle"))}
