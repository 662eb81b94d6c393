"""What each finding about a database means, by its code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from semel.doctor.finding import Severity
from semel.doctor.words import Words

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
WORDS: Final[Mapping[str, Words]] = MappingProxyType(
    {
        "database-no-tables": Words(
            _ERROR,
            "Neither jobs nor operations are there: nothing is stored, and nothing is guarded.",
            "semel migrate; or give the right --schema or database.",
        ),
        "database-not-unique": Words(
            _ERROR,
            "The unique constraint is the guard: without it two deliveries of one operation both act.",
            "Add UNIQUE (scope, job_type, key) again; first find what is there twice.",
        ),
        "database-version": Words(
            _ERROR,
            "semel's statements are not for so old a server.",
            "PostgreSQL 14 or newer; MariaDB 10.6, MySQL 8, SQLite 3.35.",
        ),
        "database-version-untested": Words(
            _NOTE, "semel's tests do not run on this version.", "15 to 18 are tested."
        ),
        "database-replica": Words(
            _ERROR, "A replica takes no writes: nothing can be claimed here.", "Give the primary's URL."
        ),
        "database-fsync": Words(
            _ERROR,
            "A crash of the machine can lose or corrupt what was committed; a lost claim acts again.",
            "fsync = on.",
        ),
        "database-page-writes": Words(
            _ERROR,
            "A crash in the middle of a write can leave a page that is half old.",
            "full_page_writes = on.",
        ),
        "database-synchronous-commit": Words(
            _ERROR,
            "A crash of the server loses the last commits: a claim that is lost while its effect happened acts again.",
            "synchronous_commit = on for the roles and the database that semel uses.",
        ),
        "database-asynchronous-standbys": Words(
            _NOTE,
            "A failover loses what the standby had not received; a claim among it acts again.",
            "synchronous_standby_names, where that matters more than the time of a commit.",
        ),
        "database-flush": Words(
            _ERROR,
            "A crash of the server loses the last commits: a claim that is lost while its effect happened acts again.",
            "innodb_flush_log_at_trx_commit = 1.",
        ),
        "database-not-visible": Words(
            _NOTE,
            "What other sessions do is not shown to this role: an old snapshot of theirs is not found.",
            "GRANT pg_monitor TO it.",
        ),
        "database-old-session": Words(
            _WARNING,
            "Dead rows since then cannot be removed: tables and indexes grow, and claims slow down.",
            "End it, or what holds it open; idle_in_transaction_session_timeout does by itself.",
        ),
        "database-old-prepared": Words(
            _WARNING,
            "It holds its locks and keeps dead rows until somebody ends it; no restart does.",
            "COMMIT PREPARED or ROLLBACK PREPARED, by its coordinator or by hand.",
        ),
        "database-slot": Words(
            _WARNING,
            "Nobody reads from it: it keeps the log, and dead rows, until the disk is full.",
            "Drop the slot, or bring its reader back; max_slot_wal_keep_size bounds it.",
        ),
        "database-standby": Words(
            _WARNING,
            "A long query on a standby keeps dead rows on the primary (hot_standby_feedback).",
            "End the query, or lower max_standby_streaming_delay and switch the feedback off.",
        ),
        "database-dead-rows": Words(
            _WARNING,
            "Vacuum does not keep up, or something holds it back: claims read past dead rows.",
            "Look for what holds it back (database-old-…), then VACUUM the table.",
        ),
        "database-bloat": Words(
            _WARNING,
            "The table takes far more room than its rows: what was full once stays on disk.",
            "VACUUM (FULL) in a quiet hour, or pg_repack.",
        ),
        "database-autovacuum": Words(
            _WARNING, "Nobody removes dead rows: the table grows, and claims slow down.", "Switch it on."
        ),
        "database-table-settings": Words(
            _WARNING,
            "Without them claims are not HOT updates, and vacuum comes late: the migration sets them.",
            "ALTER TABLE … SET (…), as in semel migration sql.",
        ),
        "database-connections": Words(
            _WARNING,
            "Workers and applications will be refused connections when all of them are up.",
            "Raise max_connections, or lower children, concurrency or pools, or put a pooler between.",
        ),
        "database-connections-full": Words(
            _WARNING,
            "Few connections are left: a deploy, which has old and new side by side, will be refused some.",
            "Raise max_connections, or lower the pools.",
        ),
        "database-schema-behind": Words(
            _ERROR,
            "This version's workers refuse to start on it.",
            "semel migrate --step pre, then the new workers.",
        ),
        "database-schema-ahead": Words(
            _ERROR, "This version must not run on it.", "Upgrade the package, wherever it runs."
        ),
        "database-history-today": Words(
            _WARNING,
            "Each completion has to make the day's table first, against every other one.",
            "Let a worker run: its upkeep makes the days ahead.",
        ),
        "database-history-ahead": Words(
            _WARNING,
            "Upkeep makes seven days ahead: no worker has done it lately.",
            "Let a worker run, and look at its log for upkeep.",
        ),
        "database-history-detaching": Words(
            _WARNING,
            "A clean-up was interrupted: the day can be neither read quickly nor dropped.",
            "Let a worker run: its upkeep finishes it. If it stays, look for old sessions.",
        ),
        "database-index-invalid": Words(
            _ERROR,
            "It costs every write and helps no read; a unique one does not keep anything unique.",
            "DROP INDEX CONCURRENTLY, and make it again.",
        ),
        "database-index-missing": Words(
            _ERROR, "Claims or clean-up read the whole table.", "Make it again, as in semel migration sql."
        ),
        "database-index-not-hot": Words(
            _WARNING,
            "It names a column that each claim writes: no claim is a HOT update any more.",
            "Drop it, or make it on other columns; ask the view all_jobs less often instead.",
        ),
        "database-lease-outlived": Words(
            _ERROR,
            "These completed after their lease had ended: the next delivery could have taken over a live run.",
            "Raise lease= over the longest run, or extend=True.",
        ),
        "database-stale": Words(
            _WARNING,
            "Their workers are gone and nobody delivered them again: done or not, nobody knows.",
            "semel operations stale; then semel held done, redo or abandon.",
        ),
        "database-held": Words(
            _WARNING, "They wait for a person: until then their work may not be done.", "semel held list."
        ),
        "database-released": Words(
            _WARNING,
            "They are known not to have happened, and nobody delivered them again: their work is not done.",
            "semel operations stale; then semel held redo or abandon.",
        ),
        "database-jobs-stuck": Words(
            _WARNING,
            "They are due, or their worker is gone, and nobody claims them.",
            "Let workers serve that queue; look at semel queues.",
        ),
        "database-jobs-held": Words(_WARNING, "They wait for a person.", "semel jobs --status held."),
        "database-failures-grow": Words(
            _WARNING,
            "More jobs failed for good in the last day than in the day before.",
            'semel jobs --status failed --ended-newer "24 h".',
        ),
        "database-retention": Words(
            _ERROR,
            "A job comes when the record of its operation may be deleted: a repeat of it acts again.",
            "Raise keep_operations over it (and tell this check: --keep).",
        ),
        "database-clock": Words(
            _WARNING,
            (
                "Leases go by the database's clock, and are safe; dated= operations, logs and schedules "
                "of other programs are not."
            ),
            "Synchronise both (chrony, NTP).",
        ),
    }
)
