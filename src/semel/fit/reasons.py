"""Why a job does not fit, and what would change it, by ``question-answer`` (or a name of its own)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

REASONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "not-known": ("Not answered: {0}", "Find it out: a wrong guess here is what happens twice."),
        "identifier-delivery": (
            "What identifies it is new for each delivery: nothing would ever be a repeat.",
            "Put an identifier of the operation into the message where it is enqueued: the order's number, the row's id.",
        ),
        "identifier-none": (
            "Nothing says which operation a message is about.",
            "Make one where the operation begins (a row with an id, a UUID from the client), store it, and send it along.",
        ),
        "key_stays-no": (
            "The key changes on the way: a retry is another operation.",
            "Make it once, where the operation begins, and pass it on; name the job type by hand.",
        ),
        "one_effect-no": (
            "Two operations would share a key, and the second is never done.",
            "Add what tells them apart: the month, the version, the position.",
        ),
        "key_plain-no": (
            "The key has no one way to be written, and would differ between two deliveries.",
            "Cents or a Decimal for a float, an aware time, single fields in place of a blob.",
        ),
        "enqueuers-no": (
            "One operation enters under two keys.",
            "Agree on one identifier, and let every sender pass it; translate at the edge where one cannot.",
        ),
        "database-none": (
            "There is no database whose unique constraint could be the guard.",
            "Let the workers reach the application's PostgreSQL or MySQL; one small table is enough.",
        ),
        "database-replica": (
            "A replica takes no writes, and shows claims late.",
            "Let the workers reach the primary.",
        ),
        "database-sqlite-shared": (
            "SQLite serves one host: files shared between hosts lose their locks.",
            "PostgreSQL or MySQL; or all workers on one host.",
        ),
        "effect-several": (
            "After a crash some of the calls may have happened, and one record cannot say which.",
            "One job and one operation for each call, enqueued one by the other.",
        ),
        "commits_midway-yes": (
            "A commit midway leaves half of the rows, and the record cannot be part of both.",
            "One commit at the end; or a job of its own for each part.",
        ),
        "in_transaction-yes": (
            "The caller's transaction can roll back after the call to the outside.",
            "Enqueue in the transaction, and act in the worker; or call it after the commit.",
        ),
        "staging-no": (
            "It cannot be shown: the proof delivers twice and kills workers, and would reach real customers.",
            "The provider's sandbox, or a recording proxy in place of its host.",
        ),
        "policy-not-chosen": (
            "Nobody has chosen what to do when nobody can tell (suggested: {0}).",
            "Ask whoever answers for a second or a missing effect, and write down what they say.",
        ),
        "policy-not-possible": (
            "The chosen policy, {0}, is not possible by the other answers.",
            "Choose one of: {1}; or change what stands against it.",
        ),
        "policy-none-possible": (
            "No policy is possible: it can neither be sent again nor looked up, nobody accepts twice "
            "or not at all, and nobody "
            "looks at what is held.",
            "Somebody who decides about held operations; or a provider with an idempotency key or a look-up.",
        ),
    }
)
