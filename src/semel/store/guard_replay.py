"""What a replay does to the records of its own synthetic operations. Nothing else changes a lease."""

from __future__ import annotations

from semel.store.statement import Operation, Statement, Steps


def end_lease(job_type: str, key: str, before: float) -> Operation[None]:
    """Let a claim's lease have ended ``before`` seconds ago, by the database's clock; nothing where there is no claim."""

    def steps() -> Steps[None]:
        yield Statement("guard/end_lease", {"job_type": job_type, "key": key, "before": before})

    return Operation("guard_end_lease", steps, alone=True)
