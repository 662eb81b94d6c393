"""Jobs in Python: Celery tasks, jobs of semel, consumers of SQS, loops that receive, guarded functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from semel.replay.finding.candidate import Candidate, Parameter, Value
from semel.replay.finding.effects import calls_of, unclear_in, watched_in, writes_rows
from semel.replay.finding.loops import fields_of, queue_of
from semel.replay.finding.modules import Function, Module, Project, constant, is_true, keyword

_CELERY: Final = ("celery.Celery", "celery.app.Celery", "celery.app.base.Celery")
_SEMEL: Final = ("semel.App", "semel.queue.app.App")
_CONSUMER: Final = ("semel.adapters.sqs.Consumer", "semel.adapters.sqs.consumer.Consumer")
_SHARED: Final = ("celery.shared_task", "celery.app.shared_task")


def jobs_of(project: Project) -> Iterator[Candidate]:
    """Every job of the project; a function that is guarded and no job is one that is called."""
    apps = [f"{module.name}:{name}" for module, name, _ in project.made_by(*_CELERY)]
    consumed = list(_consumers(project))
    yield from consumed
    handlers = {each.operation for each in consumed}
    for module in project.modules:
        for name, function in module.functions.items():
            if "." in name:
                continue
            found = _decorated(project, module, function, apps)
            if found is None or (found.way == "callable" and found.operation in handlers):
                found = _loop(project, module, function)
            if found is not None:
                yield found


def functions_of(project: Project, wanted: str) -> Iterator[Candidate]:
    """Plain functions of the project, by the end of their dotted names."""
    for module in project.modules:
        for name, function in module.functions.items():
            if "." not in name and f".{module.name}.{name}".endswith(f".{wanted.replace(':', '.')}"):
                yield _called(project, module, function)


def _called(project: Project, module: Module, function: Function) -> Candidate:
    deliver: dict[str, Value] = {"function": f"{module.name}:{function.name}"}
    return _candidate(project, module, function, function.name, "callable", deliver, leave_out=0)


def _decorated(project: Project, module: Module, function: Function, apps: list[str]) -> Candidate | None:
    guard = _guard_of(project, module, function)
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
        found = _celery(project, module, function, call, apps) or _semel(project, module, function, call)
        if found is not None:
            return found
    return None if guard is None else _called(project, module, function)


def _celery(
    project: Project, module: Module, function: Function, call: ast.Call, apps: list[str]
) -> Candidate | None:
    meaning = module.meaning(call.func)
    base, _, last = meaning.rpartition(".")
    home, _, variable = base.rpartition(".")
    app = f"{home}:{variable}"
    if meaning in _SHARED:
        app = apps[0] if len(apps) == 1 else "TODO: module:attribute of the Celery application"
    elif last != "task" or app not in apps:
        return None
    task = constant(call, "name") or f"{module.name}.{function.name}"
    deliver: dict[str, Value] = {"app": app, "task": task}
    queue = constant(call, "queue")
    if queue:
        deliver["queue"] = queue
    return _candidate(
        project, module, function, task, "celery", deliver, leave_out=1 if is_true(call, "bind") else 0
    )


def _semel(project: Project, module: Module, function: Function, call: ast.Call) -> Candidate | None:
    meaning = module.meaning(call.func)
    base, _, last = meaning.rpartition(".")
    home, _, variable = base.rpartition(".")
    if last != "job" or not any(
        (each.name, name) == (home, variable) for each, name, _ in project.made_by(*_SEMEL)
    ):
        return None
    if is_true(call, "relayed"):
        return None
    kind = constant(call, "kind") or function.name
    deliver: dict[str, Value] = {"app": f"{home}:{variable}", "kind": kind}
    first = is_true(call, "context") + is_true(call, "transaction")
    return _candidate(project, module, function, kind, "semel", deliver, leave_out=first)


def _consumers(project: Project) -> Iterator[Candidate]:
    """Consumers of semel's SQS adapter; of one with several kinds, each function."""
    for module, name, call in project.made_by(*_CONSUMER):
        queue = constant(call, "queue", 0) or ""
        given = keyword(call, "handler") or (call.args[1] if len(call.args) > 1 else None)
        handlers = given.values if isinstance(given, ast.Dict) else [given]
        for handler in handlers:
            own = project.function(module.meaning(handler)) if handler is not None else None
            if own is None:
                continue
            address = queue if "://" in queue else f"TODO: the address of the queue {queue}".strip()
            deliver: dict[str, Value] = {
                "queue_url": address,
                "worker": ["semel", "sqs", "worker", f"{module.name}:{name}"],
            }
            yield _candidate(project, *own, own[1].name, "sqs", deliver, leave_out=0)


def _loop(project: Project, module: Module, function: Function) -> Candidate | None:
    """A function that receives messages of SQS by itself."""
    for call, _ in calls_of(module, function):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "receive_message":
            break
    else:
        return None
    worker: list[str] = ["python", "-m", module.name] if module.runs else ["TODO: the command that starts it"]
    deliver: dict[str, Value] = {"queue_url": queue_of(module, call), "worker": worker}
    fields = tuple(Parameter(name) for name in fields_of(project, module, function))
    found = _candidate(project, module, function, function.name, "sqs", deliver, leave_out=99)
    notes = (
        () if fields else ("Nothing in the code says what is in the body of a message: fill in [message].",)
    )
    return Candidate(**(vars(found) | {"parameters": fields, "notes": found.notes + notes}))


def _candidate(
    project: Project,
    module: Module,
    function: Function,
    name: str,
    way: str,
    deliver: dict[str, Value],
    *,
    leave_out: int,
) -> Candidate:
    guard = _guard_of(project, module, function)
    home, guarded = module, function
    if guard is None:
        for _, called in calls_of(module, function):
            own = project.function(called) if called else None
            inner = _guard_of(project, *own) if own else None
            if own is not None and inner is not None:
                guard, (home, guarded) = inner, own
                break
    elif not _without_operation(guard):
        leave_out += 1
    operation = f"{home.name}:{guarded.name}" if guard is not None else None
    watched = watched_in(project, home, guarded) or watched_in(project, module, function)
    unclear = unclear_in(home, guarded)
    return Candidate(
        name=name,
        way=way,
        place=f"{module.file}:{function.lineno}",
        deliver=deliver,
        parameters=_parameters(function)[leave_out:],
        watched=tuple(each for each in watched if each.call != (operation or "").replace(":", ".")),
        operation=operation,
        key=constant(guard, "key") if guard is not None else None,
        writes=writes_rows(guarded),
        notes=tuple(
            f"It also calls {each}(…), of an object whose class the code does not say." for each in unclear
        ),
    )


def _guard_of(project: Project, module: Module, function: Function) -> ast.Call | None:
    """The ``once.operation(…)`` among its decorators, within one of them, or behind a name or a function there."""
    for decorator in function.decorator_list:
        for node in ast.walk(decorator):
            for call in _calls_behind(project, module, node):
                if (
                    isinstance(call.func, ast.Attribute)
                    and call.func.attr == "operation"
                    and keyword(call, "key") is not None
                ):
                    return call
    return None


def _calls_behind(project: Project, module: Module, node: ast.AST) -> Iterator[ast.Call]:
    found: list[ast.Call | None] = []
    if isinstance(node, ast.Call):
        found = [node, project.returned(module.meaning(node.func))]
    elif isinstance(node, ast.Name):
        found = [project.maker(module.meaning(node))]
    yield from (call for call in found if call is not None)


def _without_operation(guard: ast.Call) -> bool:
    """Whether the function is not given its operation as its first argument."""
    node = keyword(guard, "with_operation")
    return isinstance(node, ast.Constant) and node.value is False


def _parameters(function: Function) -> tuple[Parameter, ...]:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    needed = len(plain) - len(given.defaults)
    found = [Parameter(each.arg, _annotation(each), place < needed) for place, each in enumerate(plain)]
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Parameter(each.arg, _annotation(each), default is None))
    return tuple(found)


def _annotation(argument: ast.arg) -> str:
    return ast.unparse(argument.annotation) if argument.annotation is not None else ""
