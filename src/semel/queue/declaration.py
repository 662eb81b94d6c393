"""From a function and the options of ``@app.job`` to a `Job`; all that can be wrong is found here, at
import."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypedDict

from semel.core.arguments import Signature
from semel.core.durations import Duration, to_timedelta
from semel.core.effects import Row
from semel.core.retry import Policy, RetryPolicy
from semel.core.settings import Settings
from semel.errors import ConfigurationError
from semel.guard.guarded import Guarded
from semel.queue.guarding import GuardedPolicy, guard_job, make_handler
from semel.queue.job import Job, RunIn
from semel.store.pools import Database


class JobDeclaration(TypedDict, total=False):
    """The options of ``@app.job``, except those that change the handler's signature."""

    kind: str
    """By default the function's name."""
    queue: str
    priority: int
    max_attempts: int
    """By default the retry policy's, else the application's."""
    timeout: Duration | None
    """None: none. By default the application's."""
    retry: Policy | None
    run_in: RunIn
    once: Any
    """What ``Once(…).operation(…)`` returns: the handler is a guarded operation, and takes it as its first parameter."""
    relayed: bool
    """A relay forwards it to another queue; the function is there for its signature, and never runs."""


def declare(
    function: Callable[..., Any],
    options: JobDeclaration,
    *,
    context: bool,
    transaction: bool,
    settings: Settings,
    database: Database,
) -> Job[..., Any]:
    """Raises ConfigurationError for a function that cannot be a handler, or options that cannot be right."""
    unknown = options.keys() - JobDeclaration.__annotations__.keys()
    if unknown:
        raise ConfigurationError(f"@app.job takes no option {min(unknown)!r}.")
    _refuse_guarded(function)
    kind = options.get("kind") or _stable_name(function)
    retry, max_attempts = _retry(options, settings)
    timeout = options.get("timeout", settings.timeout)
    run_in = options.get("run_in", "auto")
    is_async = _is_async(function, kind)
    limit = None if timeout is None else to_timedelta(timeout, name=f"timeout of {kind}")
    relayed = _relayed(options, kind, given=context or transaction)
    if options.get("once") is not None:
        return _declare_guarded(function, options, kind, limit, context, transaction, settings, database)
    _check_run_in(run_in, kind, is_async=is_async, transaction=transaction)
    return Job(
        kind=kind,
        function=function,
        signature=_signature(function, kind, leading=int(context) + int(transaction)),
        is_async=is_async,
        context=context,
        transaction=transaction,
        run_in=run_in,
        queue=options.get("queue", "default"),
        priority=options.get("priority", 0),
        max_attempts=max_attempts,
        timeout=limit,
        retry=retry,
        relayed=relayed,
        payload_limit=settings.payload_limit,
        database=database,
    )


def _relayed(options: JobDeclaration, kind: str, *, given: bool) -> bool:
    if options.get("relayed") and (given or options.get("once") is not None):
        raise ConfigurationError(
            f"{kind} is relayed, so it never runs here.",
            remedy="Leave out context=, transaction= and once=; guard the task that receives it.",
        )
    return bool(options.get("relayed"))


def _refuse_guarded(function: object) -> None:
    if isinstance(function, Guarded):
        raise ConfigurationError(
            f"@app.job got the guarded function of {function.declaration.job_type}: the job would not know its answers.",
            remedy="Write it in one: @app.job(once=once.operation(…)).",
        )


def _declare_guarded(
    function: Callable[..., Any],
    options: JobDeclaration,
    kind: str,
    limit: timedelta | None,
    context: bool,
    transaction: bool,
    settings: Settings,
    database: Database,
) -> Job[..., Any]:
    """The job of a guarded operation: its handler takes context and connection itself, whatever the function takes."""
    if transaction or options.get("run_in", "auto") != "auto":
        raise ConfigurationError(
            f"{kind} has once=, which chooses the transaction and where it runs.",
            remedy="Leave out transaction= and run_in=; effect=Row() runs in the job's transaction.",
        )
    guarded = guard_job(function, options["once"], context=context, timeout=limit)
    retry, max_attempts = _retry(options, settings)
    filled_in = int(guarded.takes_operation) + int(context)
    return Job(
        kind=kind,
        function=make_handler(guarded, database, context=context),
        signature=_signature(function, kind, leading=filled_in),
        is_async=guarded.is_async,
        context=True,
        transaction=isinstance(guarded.declaration.effect, Row),
        run_in="auto",
        queue=options.get("queue", "default"),
        priority=options.get("priority", 0),
        max_attempts=max_attempts,
        timeout=limit,
        retry=GuardedPolicy(retry, max_attempts),
        guarded=True,
        guard=guarded,
        payload_limit=settings.payload_limit,
        database=database,
    )


def _stable_name(function: Callable[..., Any]) -> str:
    name = str(getattr(function, "__name__", ""))
    if not name.isidentifier():  # a lambda, a partial, a callable object
        raise ConfigurationError(
            f"{function!r} has no name of its own that stored jobs could carry.",
            remedy='Name the kind: @app.job(kind="…").',
        )
    return name


def _retry(options: JobDeclaration, settings: Settings) -> tuple[Policy, int]:
    given = options.get("retry")
    most = options.get("max_attempts")
    if most is None:
        most = given.max_attempts if isinstance(given, RetryPolicy) else None
        most = settings.max_attempts if most is None else most
    policy = RetryPolicy() if given is None else given
    if not callable(policy):
        raise ConfigurationError(
            f"retry={policy!r} is no policy.",
            remedy="Give a RetryPolicy, or a callable (exception, attempt); how often is max_attempts=.",
        )
    return policy, most


def _is_async(function: Callable[..., Any], kind: str) -> bool:
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise ConfigurationError(
            f"{kind} is a generator: nothing of it would run.", remedy="Write a plain function."
        )
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _check_run_in(run_in: str, kind: str, *, is_async: bool, transaction: bool) -> None:
    if run_in not in ("auto", "process"):
        raise ConfigurationError(f'run_in of {kind} is {run_in!r}: give "auto" or "process".')
    if run_in == "process" and is_async:
        raise ConfigurationError(
            f"{kind} is async def, and a process runs plain functions.", remedy="Make it a def."
        )
    if run_in == "process" and transaction:
        raise ConfigurationError(
            f"{kind} runs in another process, where the transaction's connection cannot follow.",
            remedy='Leave out run_in="process" or transaction=True.',
        )


def _signature(function: Callable[..., Any], kind: str, *, leading: int) -> Signature:
    """The codec of what callers pass: without the ``leading`` parameters that the worker fills in."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    positional = [
        each
        for each in parameters[:leading]
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(positional) < leading:
        raise ConfigurationError(
            f"{kind} lacks the parameters that the worker fills in.",
            remedy="With context=True the context comes first, with transaction=True then the connection: "
            f"def {kind}(ctx, connection, …).",
        )
    if not leading:
        return Signature.of(function)

    @functools.wraps(function)
    def rest(
        *args: Any, **kwargs: Any
    ) -> Any:  # never called: it carries the signature and where it was written
        raise NotImplementedError

    rest.__signature__ = signature.replace(parameters=parameters[leading:])  # type: ignore[attr-defined]
    return Signature.of(rest)
