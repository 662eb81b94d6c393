"""Which call of a job may have the effect: clients of HTTP, kits of providers, the project's own functions around them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from semel.replay.finding.candidate import Watched
from semel.replay.finding.modules import Function, Module, Project

_CLIENTS: Final = ("requests", "httpx", "urllib.request", "urllib3", "aiohttp", "http.client")
_KITS: Final = (
    "adyen", "anthropic", "boto3", "braintree", "checkout_sdk", "easypost", "firebase_admin", "github", "gocardless_pro",
    "googleapiclient", "intercom", "mailchimp_transactional", "mailgun", "mollie", "openai", "paypalrestsdk", "plaid",
    "postmarker", "pyfcm", "pyapns_client", "razorpay", "resend", "sendgrid", "shopify", "slack_sdk", "smtplib", "square",
    "stripe", "taxjar", "telegram", "twilio", "vonage", "xero", "zeep",
)  # fmt: skip
_READS: Final = frozenset(
    {
        "get",
        "head",
        "options",
        "retrieve",
        "list",
        "find",
        "fetch",
        "search",
        "load",
        "query",
        "read",
        "check",
    }
)
_MAKES: Final = frozenset(
    {
        "session",
        "client",
        "asyncclient",
        "init",
        "poolmanager",
        "request",
        "httpconnection",
        "httpsconnection",
    }
)
_ACTS: Final = frozenset(
    {
        "book", "buy", "cancel", "capture", "charge", "create", "deliver", "dispatch", "email", "issue", "mail", "notify",
        "order", "pay", "post", "publish", "purchase", "push", "put", "refund", "register", "send", "ship", "submit",
        "transfer", "upload",
    }
)  # fmt: skip
_WRITES: Final = ("insert into", "update ", "delete from")
_DEEP: Final = 4


def watched_in(
    project: Project, module: Module, function: Function, deep: int = _DEEP
) -> tuple[Watched, ...]:
    """The calls of a function that may have its effect, the most likely first; also of what it calls in the project."""
    found: dict[str, Watched] = {}
    for _, name in calls_of(module, function) if deep else ():
        for each in _weigh(project, name, deep):
            if each.call not in found or found[each.call].weight < each.weight:
                found[each.call] = each
    return tuple(sorted(found.values(), key=lambda each: -each.weight))


def writes_rows(function: Function) -> bool:
    """Whether it has SQL that writes, or adds to a session."""
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.strip().lower().startswith(_WRITES):
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = ast.unparse(node.func.value).rpartition(".")[2]
            if (node.func.attr in ("add", "commit") and base in ("session", "db")) or (
                node.func.attr in ("create", "bulk_create", "save") and base == "objects"
            ):
                return True
    return False


def unclear_in(module: Module, function: Function) -> tuple[str, ...]:
    """Calls of objects whose class nobody can tell, by names that say that something is done."""
    found = (
        ast.unparse(call.func)
        for call, name in calls_of(module, function)
        if isinstance(call.func, ast.Attribute) and (not name or name.startswith("?"))
        if _words(call.func.attr.lower()) & _ACTS
    )
    return tuple(dict.fromkeys(found))


def calls_of(module: Module, function: Function) -> Iterator[tuple[ast.Call, str]]:
    """The calls in its body, in their order, with what they name; variables are followed to what made them.

    So are the attributes of a method's object that its class makes: ``self.session = requests.Session()``.
    """
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    made = {
        node.targets[0].id: module.meaning(node.value.func)
        for node in nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.targets[0], ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _of_itself(module, function, module.meaning(node.func))
            first, dot, rest = name.partition(".")
            maker = made.get(first.removeprefix("?")) if first.startswith("?") else None
            yield node, f"{maker}.{rest}" if maker and dot and not maker.startswith("?") else name


def _of_itself(module: Module, function: Function, name: str) -> str:
    """``?self.session.post`` as what its class says of ``self.session``, or of its own method."""
    home = next((each for each, own in module.functions.items() if own is function), "").partition(".")
    receiver = function.args.args[0].arg if home[1] and function.args.args else ""
    if not receiver or not name.startswith(f"?{receiver}."):
        return name
    attribute, dot, rest = name[len(receiver) + 2 :].partition(".")
    maker = module.attributes.get(f"{home[0]}.{attribute}")
    if maker is not None and dot:
        return f"{module.meaning(maker.func)}.{rest}"
    own = f"{home[0]}.{attribute}"
    return f"{module.name}.{own}" if not dot and own in module.functions else name


def _weigh(project: Project, name: str, deep: int) -> tuple[Watched, ...]:
    own = project.function(name) if name else None
    if own is not None:
        return _weigh_own(project, name, *own, deep)
    last = name.rpartition(".")[2].lower()
    if not name or name.startswith("?") or last in _READS or last in _MAKES:
        return ()
    if _is_of(name, _KITS):
        return (Watched(name, 70, "a provider's kit"),)
    if _is_of(name, _CLIENTS):
        return (Watched(name, 50, "a client of HTTP"),)
    if _words(last) & _ACTS and _is_local(project, name):
        return (Watched(name, 40, "by its name"),)
    return ()


def _weigh_own(
    project: Project, name: str, module: Module, function: Function, deep: int
) -> tuple[Watched, ...]:
    """A function of the project's: likely where it leads outside, and its name says that it does something."""
    last = name.rpartition(".")[2].lower()
    if _words(last) & _READS:
        return ()
    outside = _leads_outside(project, module, function, _DEEP, set())
    if _words(last) & _ACTS and not last.startswith("_"):
        home = _home(module, function, name)
        return (Watched(home, 90, f"it leads to {outside}") if outside else Watched(home, 30, "by its name"),)
    inner = watched_in(project, module, function, deep - 1)
    if inner or not outside or last.startswith("_"):
        return inner
    return (Watched(_home(module, function, name), 60, f"it leads to {outside}"),)


def _home(module: Module, function: Function, name: str) -> str:
    """Where it is defined: that is where it is wrapped."""
    return next((f"{module.name}.{own}" for own, each in module.functions.items() if each is function), name)


def _leads_outside(project: Project, module: Module, function: Function, deep: int, seen: set[int]) -> str:
    """The client or kit that it comes to at last."""
    if deep == 0 or id(function) in seen:
        return ""
    seen.add(id(function))
    for _, name in calls_of(module, function):
        if name and not name.startswith("?"):
            if _is_of(name, _KITS) or _is_of(name, _CLIENTS):
                return name
            own = project.function(name)
            found = _leads_outside(project, *own, deep - 1, seen) if own else ""
            if found:
                return found
    return ""


def _is_of(name: str, packages: tuple[str, ...]) -> bool:
    return name.startswith(tuple(f"{package}." for package in packages))


def _is_local(project: Project, name: str) -> bool:
    return any(name.startswith(f"{module.name}.") for module in project.modules)


def _words(name: str) -> set[str]:
    return set(name.split("_"))
