"""What is kept of a task's message, and how it is published again: the same id and retry count, to the same place."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from celery import Celery, Task
from kombu.exceptions import SerializationError
from kombu.serialization import dumps, loads, prepare_accept_content, registry
from kombu.utils.json import loads as loads_json

ADAPTER: Final = "celery"
_JSON: Final = "json"
_NUL: Final = "\\u0000"
"""PostgreSQL's jsonb takes neither this in JSON, nor a lone half of a surrogate pair, nor NaN."""
_OF_ONE_DELIVERY: Final = frozenset({"redelivered", "is_eager", "countdown", "eta"})

Kept = dict[str, Any]


def keep(task: Task) -> Kept | None:
    """The message that the task runs for, as the record keeps it; None where it cannot be written down.

    With the message's own arguments: what stands above the guard may have made others of them, such as Pydantic's models.
    Made before the function is called, which may change what it was given.
    """
    request = task.request
    ignore_result = vars(request).get("ignore_result")
    signature = task.signature_from_request(
        request,
        retries=request.retries,
        ignore_result=task.ignore_result if ignore_result is None else ignore_result,
    )
    options = {
        name: value
        for name, value in signature.options.items()
        if value is not None and name not in _OF_ONE_DELIVERY
    }
    for serializer in _serializers(task):
        try:
            call = _pack([list(request.args or ()), dict(request.kwargs or {}), options], serializer)
        except SerializationError:
            continue
        return {"task": task.name, "id": request.id, "serializer": serializer, **call}
    return None


def _serializers(task: Task) -> list[str]:
    """The task's own, then what else its worker accepts: the message came in one of these."""
    accepted = [registry.type_to_name.get(each, each) for each in task.app.conf.accept_content]
    return list(dict.fromkeys([task.serializer or task.app.conf.task_serializer, *accepted]))


def publish(app: Celery, kept: Mapping[str, Any], **changes: Any) -> None:
    """Publish it again. ``changes`` are options that differ, such as a countdown; None leaves one out."""
    args, kwargs, options = _unpack(kept, app)
    options |= {"serializer": kept["serializer"], **changes}
    given = {name: value for name, value in options.items() if value is not None}
    app.signature(kept["task"], args, kwargs, given).apply_async()


def _pack(call: list[Any], serializer: str) -> dict[str, Any]:
    """As plain JSON, where that is what the message was and every database takes it; else as the serializer writes it."""
    content_type, encoding, data = dumps(call, serializer=serializer)
    if serializer == _JSON and _NUL not in data:
        found = json.loads(data)
        try:
            json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
        except ValueError:
            pass
        else:
            return dict(zip(("args", "kwargs", "options"), found, strict=True))
    raw = data if isinstance(data, bytes) else data.encode(encoding)
    packed = base64.b64encode(raw).decode("ascii")
    return {"content_type": content_type, "content_encoding": encoding, "packed": packed}


def _unpack(kept: Mapping[str, Any], app: Celery) -> list[Any]:
    if "packed" not in kept:
        plain = json.dumps([kept["args"], kept["kwargs"], kept["options"]])
        return list(loads_json(plain))
    accepted = prepare_accept_content([*app.conf.accept_content, registry.name_to_type[kept["serializer"]]])
    data: Any = base64.b64decode(kept["packed"])
    if kept["content_encoding"] != "binary":
        data = data.decode(kept["content_encoding"])
    return list(loads(data, kept["content_type"], kept["content_encoding"], accept=accepted))
