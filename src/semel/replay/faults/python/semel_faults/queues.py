"""Where a delivery begins and ends, by queue: hooked into each as soon as it is imported."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from .reporting import Reporter, name_of

Hook = tuple[str, Callable[[ModuleType], object]]


def hooks(reporter: Reporter) -> Iterator[Hook]:
    """The module to wait for, and what is done to it."""
    yield "celery.signals", functools.partial(_celery, reporter)
    yield "semel.queue.worker.launching", functools.partial(_semel, reporter)
    yield "botocore.client", functools.partial(_sqs, reporter)


def _celery(reporter: Reporter, signals: ModuleType) -> None:
    marks: dict[str, Any] = {}

    def begins(task_id: str, **_: Any) -> None:
        marks[task_id] = reporter.begin(task_id)

    def ends(task_id: str, state: Any = None, **_: Any) -> None:
        reporter.end(task_id, marks.pop(task_id, None), state=str(state))

    signals.task_prerun.connect(begins, weak=False)
    signals.task_postrun.connect(ends, weak=False)


def _semel(reporter: Reporter, launching: ModuleType) -> None:
    launcher = launching.Launcher
    launch = launcher.launch

    @functools.wraps(launch)
    def launch_reported(self: Any, held: Any, job: Any, ended: Any) -> Any:
        if job.run_in == "process":
            return launch(self, held, job, ended)
        reported = copy.copy(job)
        object.__setattr__(reported, "function", _reported(reporter, str(held.job.id), job.function))
        return launch(self, held, reported, ended)

    launcher.launch = launch_reported


def _reported(reporter: Reporter, delivery: str, function: Any) -> Any:
    if inspect.iscoroutinefunction(function) or getattr(function, "is_async", False):

        @functools.wraps(function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            mark = reporter.begin(delivery)
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                reporter.end(delivery, mark, error=name_of(error))
                raise
            reporter.end(delivery, mark, error="")
            return result

        return run_async

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        mark = reporter.begin(delivery)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            reporter.end(delivery, mark, error=name_of(error))
            raise
        reporter.end(delivery, mark, error="")
        return result

    return run


def _sqs(reporter: Reporter, client: ModuleType) -> None:
    """A message begins when it is received, and ends when it is deleted or given back.

    One that is left, or hidden for a while, ends by the next call for messages: but for what is inside the watched call, of
    which a consumer that receives ahead has not seen the end.
    """
    base = client.BaseClient
    call = base._make_api_call
    received: dict[str, str] = {}
    seen: list[bool] = []

    @functools.wraps(call)
    def call_reported(self: Any, operation: str, parameters: Any) -> Any:
        if self.meta.service_model.service_name != "sqs":
            return call(self, operation, parameters)
        if operation == "ReceiveMessage":
            if not seen:
                seen.append(True)
                reporter.ask("hit", "", name="ReceiveMessage")
            for handle in [each for each, known in received.items() if reporter.is_outside(known)]:
                reporter.end(received.pop(handle), how="left")
        answer = call(self, operation, parameters)
        if operation == "ReceiveMessage":
            for message in answer.get("Messages", []):
                received[message["ReceiptHandle"]] = message["MessageId"]
                reporter.begin(message["MessageId"])
        else:
            for handle in _let_go(operation, parameters):
                delivery = received.pop(handle, None)
                if delivery is not None:
                    reporter.end(delivery, how=operation)
        return answer

    base._make_api_call = call_reported


def _let_go(operation: str, parameters: Any) -> list[str]:
    """The receipt handles that a call deletes or gives back."""
    match operation:
        case "DeleteMessage":
            return [parameters["ReceiptHandle"]]
        case "DeleteMessageBatch":
            return [entry["ReceiptHandle"] for entry in parameters["Entries"]]
        case "ChangeMessageVisibility":
            return [parameters["ReceiptHandle"]] if parameters["VisibilityTimeout"] == 0 else []
        case "ChangeMessageVisibilityBatch":
            return [each["ReceiptHandle"] for each in parameters["Entries"] if each["VisibilityTimeout"] == 0]
        case _:
            return []
