"""Every error that semel raises.

Each carries a stable ``code`` and says three things: what happened, what the database holds now, and what to do.
``str(error)`` is all three; the parts are attributes, so that the CLI and the dashboard can show them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar


class SemelError(Exception):
    """The root: catch this to catch everything that semel itself raises."""

    code: ClassVar[str] = "semel"
    nested: bool = False
    """Whether it came out of a guarded function without being the answer of that function's own operation.

    Then it answers an operation that the function asked for; to the one around it, and to an adapter, it is an exception of
    the function like any other.
    """

    def __init__(self, happened: str, *, holds: str = "", remedy: str = "") -> None:
        self.happened = happened
        self.holds = holds
        self.remedy = remedy
        super().__init__(happened)

    def __str__(self) -> str:
        parts = [part for part in (self.happened, self.holds, self.remedy) if part]
        return f"{' '.join(parts)} [{self.code}]"


class ConfigurationError(SemelError):
    """A setting, a declaration or a command line that cannot be right; found before anything is stored."""

    code = "configuration"


class ArgumentError(SemelError):
    """A job's arguments do not fit its handler; ``argument`` names the one at fault. Nothing was stored."""

    code = "argument"

    def __init__(
        self, happened: str, *, argument: str | None = None, holds: str = "", remedy: str = ""
    ) -> None:
        self.argument = argument
        super().__init__(happened, holds=holds or "Nothing was stored.", remedy=remedy)


class ArgumentsTooLarge(ArgumentError):
    """A payload over the limit (64 kB unless set otherwise). Nothing was stored."""

    code = "arguments-too-large"


class PayloadUnreadable(SemelError):
    """A stored payload does not fit the handler's signature; the attempt fails with this error."""

    code = "payload-unreadable"


class UnknownKind(SemelError):
    """No handler is registered for a job's kind in this worker; the attempt fails with this error."""

    code = "unknown-kind"


class ConnectionRefused(SemelError):
    """The connection given cannot carry this call: wrong flavour (sync or async), closed, or without a transaction."""

    code = "connection-refused"


class DatabaseUnreachable(SemelError):
    """The database could not be reached or ended the connection."""

    code = "database-unreachable"


class RetryTransaction(SemelError):
    """The database ended the caller's transaction (a serialisation failure or a deadlock): run it again whole."""

    code = "retry-transaction"


class SchemaMismatch(SemelError):
    """The tables are missing, too old or too new for this version of semel."""

    code = "schema-mismatch"


class ClaimLost(SemelError):
    """This attempt no longer holds its claim: its lease ran out and the job was taken over, cancelled or moved.

    Nothing that this attempt reports is stored any more.
    """

    code = "claim-lost"


class TimedOut(SemelError):
    """An attempt ran past its time-out; it counts as an error of the attempt."""

    code = "timed-out"


class WrongState(SemelError):
    """The act does not apply to the state that the job is in; nothing was changed."""

    code = "wrong-state"


class NotFound(SemelError):
    """No such job, queue or schedule."""

    code = "not-found"


class EmbeddedServerError(SemelError):
    """The embedded PostgreSQL could not be started, stopped or used; its data directory is left as it is."""

    code = "embedded-server"


class PostgresBinariesMissing(EmbeddedServerError):
    """No PostgreSQL programs were found, or those that were named do not run."""

    code = "postgres-binaries-missing"


class ForeignDirectory(EmbeddedServerError):
    """The directory holds something that semel did not make; nothing in it was touched."""

    code = "foreign-directory"


class PostgresVersionChanged(EmbeddedServerError):
    """The data was made by another major version of PostgreSQL than the programs at hand; it is kept as it is."""

    code = "postgres-version-changed"


class PostgresStartFailed(EmbeddedServerError):
    """PostgreSQL ended or was not ready in time; the message shows the last lines of its log."""

    code = "postgres-start-failed"


class DiskFull(EmbeddedServerError):
    """The disk that holds the embedded server's data is full; data already there is kept."""

    code = "disk-full"


class KeyRefused(SemelError):
    """A value that makes no stable operation key or fingerprint. Nothing was claimed and nothing done."""

    code = "key-refused"


class GuardAnswer(SemelError):
    """An answer of the guard that is not "act" and not a repeat: the function was not called. The root of them."""

    code = "guard-answer"


class InProgress(GuardAnswer):
    """Another attempt holds the claim, or it is too early to ask. Deliver again after ``retry_after`` (a timedelta)."""

    code = "in-progress"

    def __init__(
        self, happened: str, *, retry_after: timedelta = timedelta(0), holds: str = "", remedy: str = ""
    ) -> None:
        self.retry_after = retry_after
        super().__init__(happened, holds=holds, remedy=remedy)


class Busy(InProgress):
    """An open transaction holds the operation's key (a `Row()`): nothing is known before it ends."""

    code = "busy"


class Held(GuardAnswer):
    """The operation waits for a person: nobody can tell whether its effect happened.

    ``message_kept`` says whether its record keeps a message, so that a person's redo can send it again.
    """

    code = "held"

    def __init__(
        self, happened: str, *, message_kept: bool = False, holds: str = "", remedy: str = ""
    ) -> None:
        self.message_kept = message_kept
        super().__init__(happened, holds=holds, remedy=remedy)


class PayloadMismatch(GuardAnswer):
    """The same key came with another payload: neither acted nor repeated. It never succeeds by being sent again."""

    code = "payload-mismatch"


class Abandoned(GuardAnswer):
    """A person decided that this operation is not to happen. Final."""

    code = "abandoned"


class TooOld(GuardAnswer):
    """The operation's own date is before what retention still remembers: it may have happened long ago."""

    code = "too-old"


class BrokerUnreachable(SemelError):
    """The message broker could not be reached, ended the connection, or does not let this account in."""

    code = "broker-unreachable"


class BrokerUnavailable(BrokerUnreachable):
    """The broker takes no message at all for now: throttled, full, a replica, without permission. No message is to blame."""


class StaleMessage(SemelError):
    """A message aged in the hands of a receive loop: others can have it again, so nothing was done about it."""

    code = "stale-message"


class NotDone(SemelError):
    """Raise it in a guarded function after the point of no return, where the effect certainly did not happen."""

    code = "not-done"


class UnsafeClaim(SemelError):
    """The guard refuses to claim here: an open transaction, another database, a replica, a missing transaction."""

    code = "unsafe-claim"


class MessageRefused(SemelError):
    """A relay could not hand one message over: its broker, or what makes it a message, refuses it. Nothing was sent."""

    code = "message-refused"


class MessageUnfit(MessageRefused):
    """A message that never fits: no task or topic for its kind, arguments that the target cannot carry, too large."""

    code = "message-unfit"


class WorkerDidNotStart(SemelError):
    """A replay's worker ended, or did not get ready; nothing was sent, and nothing of it is left running."""

    code = "worker-did-not-start"

    def __init__(self, command: Sequence[str], log: str) -> None:
        lines = log.strip().splitlines()
        last = lines[-1] if lines else ""
        absent = last.startswith("ModuleNotFoundError")
        super().__init__(
            f"The worker did not start: {last}"
            if absent
            else f"The worker did not start: {' '.join(command)}",
            holds="No message was sent to it.",
            remedy="The code is looked for in this folder: if the module is yours, name the folder that it is imported from "
            "(--code FOLDER); if it is a library, install it for the program of the command.\n"
            f"The command: {' '.join(command)}"
            if absent
            else f"Run it by hand in the code's folder. The end of its log:\n{log.strip() or '(empty)'}",
        )


class NotStaging(SemelError):
    """A replay would write to a database or broker that nobody declared as staging, or that holds other traffic."""

    code = "not-staging"


class TableLeftAside(SemelError):
    """A replay could not put a guard's table back under its name; it is there under another one, with all its rows."""

    code = "table-left-aside"

    def __init__(self, table: str, kept: str, why: str, by_hand: Sequence[str]) -> None:
        shown = "; ".join(by_hand)
        super().__init__(
            f"The table {table} could not be put back: {why.rstrip('.')}.",
            holds=f"It is kept as {kept}, with all its rows; what is called {table} now is not it.",
            remedy=f"The next replay on it tries again first. By hand: {shown}"
            if by_hand
            else f"Look at both, move aside the one that is not to stay, and call {kept} {table} again.",
        )


class QueryRefused(SemelError):
    """A database refused to read somebody's table: no such table or column, no permission, a view that writes."""

    code = "query-refused"


class StatementTimedOut(SemelError):
    """A statement over somebody's table ran into its time-out and was ended. Nothing was changed."""

    code = "statement-timed-out"
