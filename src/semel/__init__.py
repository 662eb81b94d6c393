"""Background jobs on PostgreSQL, stored in the transaction that caused them."""

from semel.core.effects import (
    DONE,
    NOT_DONE,
    UNKNOWN,
    AcceptDuplicate,
    AcceptMiss,
    Found,
    Hold,
    Lookup,
    ProviderKey,
    Row,
)
from semel.core.job import Enqueued, JobOptions, NewJob
from semel.core.keys import Secret
from semel.core.outcomes import Cancel, HoldForPerson, JobOutcome, Retry, Snooze
from semel.core.retry import Backoff, RetryPolicy, Rule
from semel.core.settings import Settings
from semel.core.states import Status
from semel.errors import (
    Abandoned,
    ArgumentError,
    ArgumentsTooLarge,
    Busy,
    ClaimLost,
    ConfigurationError,
    ConnectionRefused,
    DatabaseUnreachable,
    EmbeddedServerError,
    GuardAnswer,
    Held,
    InProgress,
    KeyRefused,
    NotDone,
    NotFound,
    PayloadMismatch,
    PayloadUnreadable,
    RetryTransaction,
    SchemaMismatch,
    SemelError,
    TimedOut,
    TooOld,
    UnknownKind,
    UnsafeClaim,
    WrongState,
)
from semel.guard.explaining import explain
from semel.guard.guarded import Guarded
from semel.guard.once import Once
from semel.guard.operation import AsyncOperation, Operation
from semel.queue.app import App
from semel.queue.context import JobContext
from semel.queue.job import BoundJob, Job
from semel.version import __version__

__all__ = [
    "DONE",
    "NOT_DONE",
    "UNKNOWN",
    "Abandoned",
    "AcceptDuplicate",
    "AcceptMiss",
    "App",
    "ArgumentError",
    "ArgumentsTooLarge",
    "AsyncOperation",
    "Backoff",
    "BoundJob",
    "Busy",
    "Cancel",
    "ClaimLost",
    "ConfigurationError",
    "ConnectionRefused",
    "DatabaseUnreachable",
    "EmbeddedServerError",
    "Enqueued",
    "Found",
    "GuardAnswer",
    "Guarded",
    "Held",
    "Hold",
    "HoldForPerson",
    "InProgress",
    "Job",
    "JobContext",
    "JobOptions",
    "JobOutcome",
    "KeyRefused",
    "Lookup",
    "NewJob",
    "NotDone",
    "NotFound",
    "Once",
    "Operation",
    "PayloadMismatch",
    "PayloadUnreadable",
    "ProviderKey",
    "Retry",
    "RetryPolicy",
    "RetryTransaction",
    "Row",
    "Rule",
    "SchemaMismatch",
    "Secret",
    "SemelError",
    "Settings",
    "Snooze",
    "Status",
    "TimedOut",
    "TooOld",
    "UnknownKind",
    "UnsafeClaim",
    "WrongState",
    "__version__",
    "explain",
]
