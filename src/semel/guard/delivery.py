"""What happens to one delivery: begin, perhaps look, act, and end. One flow for sync and async."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from semel.core.effects import Answer, Found, Lookup, ProviderKey
from semel.core.operations import Move, Outcome, Record, Reply, State, failed
from semel.errors import (
    Abandoned,
    Busy,
    ClaimLost,
    ConfigurationError,
    Held,
    InProgress,
    PayloadMismatch,
    RetryTransaction,
    SemelError,
    TooOld,
)
from semel.guard.answers import log_answer
from semel.guard.declaration import Declaration
from semel.guard.flow import Ask, Call, Flow, patiently
from semel.guard.giving_back import give_back
from semel.guard.operation import Handle
from semel.store import guard_end
from semel.store.faults import LockBusy
from semel.store.guard_begin import begin_known, begin_new, begin_row, looked, read
from semel.store.guard_request import Again, Begun, Request
from semel.store.statement import Operation

logger = logging.getLogger("semel.guard")

_TRIES: Final = 10
_BUSY_WAIT: Final = timedelta(seconds=1)
MakeHandle = Callable[[Request, Begun], Handle]
Handler = Callable[[Handle], Any]
Kind = TypeVar("Kind", bound=Handle)


class Repeat:
    """A further delivery of a completed operation: answered with what is stored, without acting."""

    def __init__(self, record: Record) -> None:
        self.result = record.result
        self.outcome = record.outcome
        self.result_dropped = record.result_dropped


def deliver(
    declaration: Declaration,
    requests: Sequence[Request],
    *,
    beyond: bool = False,
    find: Callable[[str], Any] | None,
    make_handle: MakeHandle,
    handler: Handler,
) -> Flow[Any]:
    """One delivery of an outside effect. Returns the handler's result or a `Repeat`; raises the other answers."""
    request = yield from _current(requests, beyond)
    called: list[Handle] = []

    def call(handle: Handle) -> Any:
        called.append(handle)
        return handler(handle)

    try:  # from the claim to the act without a gap: an interrupt can come between any two steps
        begun = yield from _begin(request)
        if begun.reply is Reply.LOOK:
            begun = yield from _look(declaration, request, begun, find)
        if begun.reply is not Reply.ACT:
            return answer(declaration, request, begun)
        handle = make_handle(request, begun)
        result = yield Call(partial(call, handle))
        _require_act(declaration, handle)
    except GeneratorExit:  # nobody drives this flow any more, so nothing can be written: the lease decides
        raise
    except BaseException as error:
        if called:
            _tell_whose(error, called[0])
            yield from _failed(declaration, called[0], error)
        elif not isinstance(
            error, SemelError
        ):  # an interrupt, a soft limit: the claim may be there all the same
            yield from give_back(request, _shown(error))
        raise
    return (yield from handle._finish(result))  # noqa: SLF001


def deliver_row(
    declaration: Declaration,
    requests: Sequence[Request],
    *,
    beyond: bool = False,
    apart: Callable[[Operation[Any]], Any],
    make_handle: MakeHandle,
    handler: Handler,
) -> Flow[Any]:
    """One delivery of a `Row()`, inside the transaction whose session answers the asks.

    Returns the handler's result, or `Unacted` for every other answer: it is raised once the transaction is over, so that
    what was written about it stays. ``apart`` asks on a connection of the guard's own.
    """
    request = yield from _current(requests, beyond)
    begun = yield from _begin_row(request)
    if begun.unwritten:
        told = yield Call(lambda: apart(begin_known(request)))
        begun = begun if isinstance(told, Again) else told
    if begun.reply is not Reply.ACT:
        return Unacted(request, begun)
    handle = make_handle(request, begun)
    try:
        result = yield Call(lambda: handler(handle))
    except SemelError as error:
        _tell_whose(error, handle)
        raise
    return (yield from handle._finish(result))  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Unacted:
    """An answer to a `Row()` that is not "act"."""

    request: Request
    begun: Begun


def answer(declaration: Declaration, request: Request, begun: Begun) -> Repeat:
    """A repeat, or the error for every other answer; each is logged with its reason."""
    shown = request.label or request.key[:12]
    operation = f"{declaration.job_type} {shown}"
    if begun.reply in (Reply.REPEAT, Reply.ABANDONED):
        record = begun.record
        assert record is not None
        outcome = Outcome.MISSED if record.state is State.CLAIMED else record.outcome
        log_answer(logging.INFO, request, begun.reply.value, f"completed ({outcome})")
        if begun.reply is Reply.ABANDONED:
            raise Abandoned(
                f"{operation} was abandoned by a person.", holds="It is completed, without an effect."
            )
        return Repeat(record if record.state is State.COMPLETED else _missed(record))
    log_answer(logging.WARNING, request, begun.reply.value, begun.reason)
    match begun.reply:
        case Reply.MISMATCH:
            raise PayloadMismatch(
                f"{operation} came before with another payload: {begun.reason}.",
                holds="The first one's record is unchanged.",
                remedy="Give different operations different keys, or name the fields that count by payload=.",
            )
        case Reply.HELD:
            raise Held(
                f"{operation} is held: {begun.reason or 'nobody can tell whether its effect happened'}.",
                message_kept=begun.record is not None and begun.record.message_kept,
                remedy="A person decides: semel held list",
            )
    raise InProgress(
        f"{operation} is claimed: {begun.reason}.",
        retry_after=begun.wait or _BUSY_WAIT,
        remedy="Deliver it again later.",
    )


def _current(requests: Sequence[Request], beyond: bool) -> Flow[Request]:
    """The request whose key has a record: with a rotated secret the older key may be the one that counts.

    An operation whose record may have been deleted by now must have one: without it, nobody knows whether it was done.
    """
    for older in requests[1:]:
        if (yield Ask(read(older))) is not None:
            return older
    request = requests[0]
    if beyond and (yield Ask(read(request))) is None:
        reason = "its own date is older than records are kept, and it has none"
        log_answer(logging.WARNING, request, "too_old", reason)
        raise TooOld(
            f"{request.job_type} {request.label or request.key[:12]} may have been done long ago: {reason}.",
            holds="Nothing was claimed and nothing done.",
            remedy="Find out, and do it by hand; or keep records longer (keep=, keep_operations).",
        )
    return request


def _begin(request: Request) -> Flow[Begun]:
    for _ in range(_TRIES):
        try:
            begun = yield Ask(begin_new(request))
            if begun is None:
                begun = yield Ask(begin_known(request))
        except LockBusy as error:
            raise busy(request) from error
        except RetryTransaction:
            continue
        if not isinstance(begun, Again):
            return begun  # type: ignore[no-any-return]
    raise busy(request)


def log_retry(request: Request, error: RetryTransaction) -> None:
    """The database ended or closed the transaction of a `Row()`."""
    log_answer(logging.WARNING, request, "retry_transaction", error.happened)


def _begin_row(request: Request) -> Flow[Begun]:
    in_savepoint = False
    for _ in range(_TRIES):
        try:
            begun = yield Ask(begin_row(request, in_savepoint=in_savepoint))
        except LockBusy as error:
            raise busy(request) from error
        if begun is None:
            raise busy(request)
        if not isinstance(begun, Again):
            return begun  # type: ignore[no-any-return]
        in_savepoint = True
    raise busy(request)


def _look(
    declaration: Declaration, request: Request, begun: Begun, find: Callable[[str], Any] | None
) -> Flow[Begun]:
    assert find is not None
    error: str | None = None
    finding: Any = Answer.UNKNOWN
    try:
        finding = yield Call(lambda: find(begun.reference))
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
        logger.warning("%s: its look-up failed: %s", declaration.job_type, error)
    result: str | None = None
    if isinstance(finding, Found):
        from semel.guard.results import encode_result

        result, _ = encode_result(finding.result, declaration)
        finding = Answer.DONE
    if not isinstance(finding, Answer):
        error = f"the look-up answered {finding!r}, which is not DONE, NOT_DONE or UNKNOWN"
        logger.error("%s: %s", declaration.job_type, error)
        finding = Answer.UNKNOWN
    told = yield from patiently(looked(request, finding, result=result, error=error))
    if isinstance(told, Again):
        log_answer(logging.WARNING, request, "claim_lost", "the look-up outlived its lease")
        raise ClaimLost(
            f"The look-up of {declaration.job_type} took longer than its lease, and another attempt took over.",
            holds="Nothing was done by this one.",
        )
    return told


def _require_act(declaration: Declaration, handle: Handle) -> None:
    if declaration.acting == "explicit" and not handle.completed and not handle._acted:  # noqa: SLF001
        raise ConfigurationError(
            f"{declaration.job_type} returned without op.acting() or op.done().",
            remedy='Call the outside system inside "with op.acting():", or declare acting="from_start".',
        )


def _tell_whose(error: BaseException, handle: Handle) -> None:
    """Mark an answer that came out of the function: it is this operation's own, or that of another one inside it.

    The outermost operation marks last. `RetryTransaction` is about a transaction, which both may be in.
    """
    if isinstance(error, SemelError) and not isinstance(error, RetryTransaction):
        error.nested = error is not handle.told


def _failed(declaration: Declaration, handle: Handle, error: BaseException) -> Flow[None]:
    """Write what an exception means. Where that fails too the lease decides: it is never the error that is raised."""
    if handle.completed or handle.lost:
        return
    certain = isinstance(error, declaration.not_done)
    shown = _shown(error)
    request = handle.request
    try:
        if failed(acting=handle.passed, not_done=certain, in_doubt=handle.in_doubt) is Move.RELEASE:
            yield from patiently(guard_end.release(request, error=shown))
            log_answer(logging.INFO, request, "released", shown)
        else:
            yield from patiently(guard_end.uncertain(request, error=shown))
            log_answer(logging.WARNING, request, "uncertain", shown)
    except Exception as storing:  # whatever the driver raises
        logger.error("%s: its end could not be stored, its lease decides: %s", declaration.job_type, storing)


def _shown(error: BaseException) -> str:
    text = "".join(traceback.format_exception_only(error)).strip()
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()[:2000]


def busy(request: Request) -> Busy:
    """The answer where an open transaction has the key, or SQLite's file."""
    log_answer(logging.WARNING, request, "busy", "an open transaction has its key")
    return Busy(
        f"{request.job_type} {request.label or request.key[:12]} is in an open transaction.",
        retry_after=_BUSY_WAIT,
        remedy="Deliver it again later.",
    )


def _missed(record: Record) -> Record:
    from dataclasses import replace

    return replace(record, state=State.COMPLETED, outcome=Outcome.MISSED)


def lookup_of(declaration: Declaration) -> Lookup | None:
    """The look-up that a declaration may come to."""
    effect = declaration.effect
    if isinstance(effect, ProviderKey):
        return effect.then if isinstance(effect.then, Lookup) else None
    return effect if isinstance(effect, Lookup) else None
