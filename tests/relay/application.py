"""The relay that the tests run in processes of its own: where it sends to is JSON in the environment."""

from __future__ import annotations

import json
import os
from typing import Any

import semel
from semel.relay import Relay, Route, Target, ToCelery, ToNATS, ToRabbitMQ, ToSidekiq, ToSQS

TARGET = "SEMEL_TEST_TARGET"
OPTIONS = "SEMEL_TEST_ROUTE"

app = semel.App()


@app.job(queue="out", relayed=True)
def note(number: int, key: str | None = None) -> None: ...


@app.job(queue="elsewhere", relayed=True)
def other(number: int) -> None: ...


def make_target(told: dict[str, Any]) -> Target:
    match told["kind"]:
        case "sidekiq":
            return ToSidekiq(told["url"], {"note": ("NoteJob", ["number", "key"])})
        case "rabbitmq":
            return ToRabbitMQ(told["url"], told.get("routing_key", "{queue}"))
        case "nats":
            return ToNATS(told["url"], told.get("subject", "out.{kind}"))
        case "sqs":
            return ToSQS(told["url"])
        case "celery":
            from tests.relay.tasks import make_celery

            return ToCelery(make_celery(told["url"]), tasks={"note": "tests.note"})
    raise ValueError(told)


def make_relay() -> Relay:
    target = make_target(json.loads(os.environ[TARGET]))
    return Relay(app, {"out": Route(target, **json.loads(os.environ.get(OPTIONS, "{}")))})


if TARGET in os.environ:
    relay = make_relay()
