"""What replay has to be told about a job: the same things in Python and in TOML.

In any text, ``${NAME}`` is the environment variable of that name; messages have ``{n}`` for the operation's number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

Message: TypeAlias = Mapping[str, Any]
"""The arguments of one delivery, by name; for a Sidekiq class, and where they are positional, their order counts too."""
MessageOf: TypeAlias = Callable[[int], Message]
"""The message of the n-th operation."""


class CalledFunction(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="callable"
):
    """The job is a function; each delivery is a call of it, in a process of its own. ``function`` is ``module:name``."""

    function: str
    positional: bool = False
    """Whether it is called with the message's values by position, in their order, and not by name."""


class Command(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="command"
):
    """The job is a command; each delivery is a run of it.

    In ``command``, ``{message}`` is the message as JSON, ``{name}`` its field of that name; it is given on stdin too.
    """

    command: list[str]


class SemelJob(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="semel"
):
    """A job of semel's own queue. ``app`` is ``module:attribute``, ``kind`` the job's kind."""

    app: str
    kind: str
    database: str | None = None
    """None: SEMEL_DATABASE_URL."""
    unique_key: str | None = None
    """With which callers enqueue it, if they do; ``{name}`` is the message's field."""


class CeleryTask(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="celery"
):
    """A Celery task, sent to its queue and run by ``celery worker`` with ``options``."""

    app: str
    task: str
    queue: str | None = None
    """None: the one that its routes say."""
    options: list[str] = msgspec.field(default_factory=list)
    positional: bool = False
    """Whether who sends it passes the message's values by position, in their order, and not by name."""


class SqsQueue(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="sqs"
):
    """Messages of an Amazon SQS queue, consumed by ``worker``: the command that starts the consumer."""

    queue_url: str
    worker: list[str]
    endpoint_url: str | None = None
    region: str | None = None
    group: str | None = None
    """The message group, for FIFO queues; ``{n}`` is the operation's number."""
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


class SidekiqJob(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="sidekiq"
):
    """A Sidekiq class, pushed to Redis and run by ``worker``: ``["bundle", "exec", "sidekiq", "-r", "./app.rb"]``."""

    job_class: str
    worker: list[str]
    redis_url: str | None = None
    """None: REDIS_URL."""
    queue: str = "default"


Deliver: TypeAlias = CalledFunction | Command | SemelJob | CeleryTask | SqsQueue | SidekiqJob


class Watch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The call that has the effect: it is stopped, killed and counted there. Give ``call`` or ``http``.

    ``call`` is a dotted name (``shop.provider.Client.charge``), or ``Class#method`` or ``Class.method`` in Ruby.
    ``http`` is the address of the outside system; workers find the recording proxy under ``variable`` in its place, or as
    their HTTP proxy where there is no ``variable``.
    """

    call: str | None = None
    http: str | None = None
    variable: str | None = None
    answer: dict[str, Any] | None = None
    """What the proxy answers by itself (``status``, ``body``, ``headers``), for staging without live calls.

    None: it asks ``http``.
    """
    only: str | None = None
    """Of the proxied requests, those whose ``METHOD /path`` matches this regular expression have the effect.

    None: all but GET, HEAD and OPTIONS.
    """
    dwell: str | float = "20 ms"
    """How long the effect takes at least, so that two deliveries overlap."""


class CountCalls(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="calls"
):
    """Calls of the watched call that returned, or requests that were answered.

    Under a provider's key they are told apart by their arguments.
    """


class CountSql(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="sql"
):
    """A query that answers the number of effects of one message; ``:name`` is the message's field of that name."""

    query: str
    database: str | None = None
    """An address, or a SQLite file; None: SEMEL_DATABASE_URL."""


class CountHttp(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by", tag="http"
):
    """An address that answers JSON; ``{name}`` in it is the message's field.

    ``field`` is the dotted path to a number, or to a list whose length counts.
    """

    url: str
    field: str | None = None


class GuardPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What keeps the job from acting twice.

    For semel's guard ``operation`` (``module:name`` of the guarded function) says it all. For another, ``table`` and
    ``columns`` name the unique constraint, and ``policy`` what it promises: ``once`` is one effect in the end, whatever
    happened. ``lease`` is when another guard lets go of what a dead worker had.
    """

    operation: str | None = None
    policy: str | None = None
    table: str | None = None
    columns: list[str] = msgspec.field(default_factory=list)
    database: str | None = None
    lease: str | float | None = None


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the same job is delivered without its guard: it must repeat there, or the run shows nothing.

    semel's guard needs none: its keys are made new at each delivery. ``none`` gives the reason why there is none.
    """

    deliver: Deliver | None = None
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    none: str | None = None


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job, as replay delivers it."""

    name: str
    deliver: Deliver
    watch: Watch
    message: dict[str, Any] | MessageOf
    look_alike: dict[str, Any] | MessageOf | None = None
    """What differs in a message that looks alike and is another operation; ``{n}`` is a number of its own."""
    changed: dict[str, Any] | MessageOf | None = None
    """What differs in a message of the same operation with another payload."""
    count: CountCalls | CountSql | CountHttp = msgspec.field(default_factory=CountCalls)
    guard: GuardPlace = msgspec.field(default_factory=GuardPlace)
    control: Control = msgspec.field(default_factory=Control)
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Of the workers, beside this process's own."""
    rounds: int = 100
    """Of two workers at once."""
    patience: str | float = "30 s"
    """How long one delivery is waited for."""
    redelivery: str | float = 0
    """How long the broker is given to deliver again by itself what a killed worker had; then replay sends it again."""
