"""Background jobs on PostgreSQL, stored in the transaction that caused them."""

from semel.core.job import Enqueued, JobOptions, NewJob
from semel.core.outcomes import Cancel, HoldForPerson, JobOutcome, Retry, Snooze
from semel.core.retry import Backoff, RetryPolicy, Rule
from semel.core.settings import Settings
from semel.core.states import Status
from semel.errors import (
    ArgumentError,
    ArgumentsTooLarge,
    ClaimLost,
    ConfigurationError,
    ConnectionRefused,
    DatabaseUnreachable,
    EmbeddedServerError,
    NotFound,
    PayloadUnreadable,
    RetryTransaction,
    SchemaMismatch,
    SemelError,
    TimedOut,
    UnknownKind,
    WrongState,
)
from semel.queue.app import App
from semel.queue.context import JobContext
from semel.queue.job import BoundJob, Job
from semel.version import __version__

__all__ = [
    "App",
    "ArgumentError",
    "ArgumentsTooLarge",
    "Backoff",
    "BoundJob",
    "Cancel",
    "ClaimLost",
    "ConfigurationError",
    "ConnectionRefused",
    "DatabaseUnreachable",
    "EmbeddedServerError",
    "Enqueued",
    "HoldForPerson",
    "Job",
    "JobContext",
    "JobOptions",
    "JobOutcome",
    "NewJob",
    "NotFound",
    "PayloadUnreadable",
    "Retry",
    "RetryPolicy",
    "RetryTransaction",
    "Rule",
    "SchemaMismatch",
    "SemelError",
    "Settings",
    "Snooze",
    "Status",
    "TimedOut",
    "UnknownKind",
    "WrongState",
    "__version__",
]
