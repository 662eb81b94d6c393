"""Sends one task of the user's Celery application, and says what its broker has."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

from celery.app.utils import find_app

from semel.replay.inside.celery_broker import Broker, broker_of
from semel.replay.inside.lines import Answers, serve
from semel.replay.ways.addresses import shown_address

_BETWEEN: Final = 0.05
"""Seconds between two looks: between taking a message and noting it, a worker shows none for an instant."""
_PING: Final = 1.0
_SOON: Final = 10.0
_SOON_ENOUGH: Final = 60.0
"""Seconds; who delivers again later than that is not waited for."""
_SWEEP: Final = 10.0
"""Kombu looks for what is past its time-out every so many seconds, times as many, unless told otherwise."""
ASKED: Final = (
    *("describe", "send", "send_again", "pending", "others_messages", "others_workers", "answers", "clear"),
)


class Recorder:
    """A producer that remembers what is published, so that the very same can be published again."""

    def __init__(self, producer: Any, published: list[tuple[Any, dict[str, Any]]]) -> None:
        self._producer = producer
        self._published = published

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def publish(self, body: Any, **options: Any) -> Any:
        self._published.append((body, {**options, "headers": dict(options.get("headers") or {})}))
        return self._producer.publish(body, **options)


class Sender:
    """The application, and the messages that were sent of one of its tasks."""

    def __init__(self, app: Any, task: str, queue: str | None) -> None:
        self.app = app
        self._task = task
        self._options = {"queue": queue} if queue else {}
        self._published: list[tuple[Any, dict[str, Any]]] = []
        self._sent: dict[str, tuple[Any, dict[str, Any]]] = {}
        send = app.amqp.send_task_message

        def recording(producer: Any, name: str, message: Any, **options: Any) -> Any:
            return send(Recorder(producer, self._published), name, message, **options)

        app.amqp.send_task_message = recording

    def describe(self) -> dict[str, Any]:
        """Where the task goes, and what is written to."""
        connection = self.app.connection_for_write()
        targets = {"broker": shown_address(connection.as_uri(), connection.port)}
        if self._backend():
            targets["results"] = self._backend()
        pool = str(self.app.conf.worker_pool or "prefork")
        again = {victim: self._delivers_again(victim) for victim in ("child", "parent", "group")}
        return {
            "queue": self.queue,
            "targets": targets,
            "eager": self._eager(),
            "pool": pool,
            "again": again,
        }

    def send(self, id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:  # noqa: A002
        """Send it as the application does; the id that it went under, or None where nothing was published."""
        self._published.clear()
        task = self.app.tasks.get(self._task)
        if task is None:
            self.app.send_task(self._task, tuple(args), dict(kwargs), task_id=id, **self._options)
        else:
            task.apply_async(tuple(args), dict(kwargs), task_id=id, **self._options)
        if not self._published:
            return None
        body, options = self._published[0]
        found = str(options["headers"].get("id") or options["correlation_id"])
        self._sent[found] = (body, options)
        return found

    def send_again(self, id: str) -> str:  # noqa: A002
        """Publish the very same once more, past whatever the task does when it is sent."""
        body, options = self._sent[id]
        with self.app.producer_pool.acquire(block=True) as producer:
            producer.publish(body, **{**options, "headers": dict(options["headers"])})
        return id

    def pending(self, nodes: list[str]) -> int:
        """The larger of two looks."""
        first = self._broker.pending(nodes)
        time.sleep(_BETWEEN)
        return max(first, self._broker.pending(nodes))

    def others_messages(self, nodes: list[str]) -> list[str]:
        """Messages of others in the application's queues, and who else consumes them."""
        found = []
        for queue in sorted({self.queue, *self.app.amqp.queues}):
            ours = self._sent if queue == self.queue else {}
            messages, consumers = self._broker.look(queue, ours, len(nodes) if ours or nodes else 0)
            if messages:
                found.append(f"{messages} messages in the queue {queue}")
            if consumers:
                found.append(f"{consumers} other consumers of the queue {queue}")
        return found

    def others_workers(self, nodes: list[str]) -> list[str]:
        """Workers of others that answer a ping."""
        answers = self.app.control.ping(timeout=_PING) or []
        others = {name for answer in answers for name in answer} - set(nodes)
        return [f"another worker: {name}" for name in sorted(others)]

    def answers(self, node: str) -> bool:
        """Whether a worker answers."""
        return bool(self.app.control.ping(destination=[node], timeout=_PING, limit=1))

    def clear(self, alone: bool) -> None:
        """Take out what was sent, and its results."""
        self._broker.clear(self._sent, alone=alone)
        for each in self._sent:
            try:
                self.app.AsyncResult(each).forget()
            except NotImplementedError:  # results that cannot be taken back, or none at all
                break

    @cached_property
    def queue(self) -> str:
        """The queue that the task's routes and options say."""
        task = self.app.tasks.get(self._task)
        own = {} if task is None else dict(task._get_exec_options())  # noqa: SLF001
        options = {**own, **self._options}
        options.pop("ignore_result", None)
        route = self.app.amqp.router.route(options, self._task, (), {})
        found = route.get("queue")
        if found is None:
            return str(route.get("routing_key") or self.app.conf.task_default_queue)
        return str(getattr(found, "name", found))

    @cached_property
    def _broker(self) -> Broker:
        return broker_of(self.app, self.queue)

    def _backend(self) -> str:
        url = str(self.app.backend.as_uri() or "")
        return "" if url.startswith(("disabled", "rpc")) else shown_address(url)

    def _delivers_again(self, victim: str) -> float:
        """Seconds within which the broker gives out again what such a victim had; 0: not, or not soon."""
        task, conf = self.app.tasks.get(self._task), self.app.conf
        late = conf.task_acks_late if task is None else task.acks_late
        rejects = conf.task_reject_on_worker_lost if task is None else task.reject_on_worker_lost
        if not late or (victim == "child" and not rejects):
            return 0.0
        if victim == "child" or self.app.connection_for_write().transport.driver_type != "redis":
            return _SOON
        options = conf.broker_transport_options or {}
        hidden = float(options.get("visibility_timeout") or conf.get("visibility_timeout") or 3600)
        sweep = float(options.get("unacked_restore_interval", _SWEEP)) * float(
            options.get("unacked_restore_throttle", _SWEEP)
        )
        return hidden + sweep + _SOON if hidden + sweep <= _SOON_ENOUGH else 0.0

    def _eager(self) -> str | None:
        if self.app.conf.task_always_eager:
            return "task_always_eager is set: a task runs where it is sent"
        if str(self.app.connection_for_write().transport.driver_type) == "memory":
            return "the broker is in memory: no message leaves its process"
        return None


def load(name: str) -> Any:
    """The application as ``celery -A NAME`` finds it, with the modules of its tasks."""
    app = find_app(name)
    app.loader.import_default_modules()
    app.finalize()
    return app


def main() -> None:
    """Load the application, then serve until stdin ends."""

    def make() -> Answers:
        app, task, *queue = sys.argv[1:]
        sender = Sender(load(app), task, queue[0] if queue else None)
        return {each: partial(_call, getattr(sender, each)) for each in ASKED}

    serve(make)


def _call(method: Callable[..., Any], told: dict[str, Any]) -> Any:
    return method(**told)


if __name__ == "__main__":
    main()
