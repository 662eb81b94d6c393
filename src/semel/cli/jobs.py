"""One job, or some by their ids: look, retry, cancel, delete."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semel.cli.choices import AsJson, Database, Schema, Who, Why, name_person
from semel.cli.group import NOT_SO, explain
from semel.cli.output import moment, print_json, printable_lines
from semel.cli.place import open_place

if TYPE_CHECKING:
    from semel.core.report import JobRecord
    from semel.operate import Acted
    from semel.store.statement import Operation

Id = Annotated[int, typer.Argument(metavar="ID", show_default=False)]
Ids = Annotated[list[int], typer.Argument(metavar="ID", show_default=False)]


def show(job_id: Id, database: Database = None, schema: Schema = None, as_json: AsJson = False) -> None:
    """Show one job with all there is about it.

    Payload, progress, the last errors with tracebacks, and what people did to it.

    Example: semel job show 42
    """
    from semel.operate import carry_out, explain_missing
    from semel.store.run import run
    from semel.store.views import find_job

    with open_place(database, schema) as session:
        record = run(find_job(job_id), session)
        if record is None:
            raise carry_out(explain_missing(job_id), session)
    if as_json:
        print_json(record)
    else:
        typer.echo("\n".join(_describe(record)))


def retry(
    ids: Ids,
    who: Who = None,
    why: Why = None,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Run ended jobs again.

    From their first attempt; one that is in the history runs again as a new job.

    Example: semel job retry 42 43 --why "the mail server is back"
    """
    from semel.operate import retry as act

    _act_on_each("retry", ids, lambda one: act(one, who=name_person(who), why=why), database, schema, as_json)


def cancel(
    ids: Ids,
    who: Who = None,
    why: Why = None,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Cancel jobs.

    Those that wait, run, failed or are held. A running one loses its claim at once; its handler is told at its
    worker's next lease beat.

    Example: semel job cancel 42 --why "ordered twice"
    """
    from semel.operate import cancel as act

    _act_on_each(
        "cancel", ids, lambda one: act(one, who=name_person(who), why=why), database, schema, as_json
    )


def delete(
    ids: Ids,
    who: Who = None,
    why: Why = None,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Delete jobs that do not run.

    Who deleted them stays on record.

    Example: semel job delete 42 --why "test data"
    """
    from semel.operate import delete as act

    _act_on_each(
        "delete", ids, lambda one: act(one, who=name_person(who), why=why), database, schema, as_json
    )


def _act_on_each(
    act: str,
    ids: list[int],
    make: Callable[[int], Operation[Acted]],
    database: str | None,
    schema: str | None,
    as_json: bool,
) -> None:
    """Each id by itself: one that cannot be done is said, and the others are done all the same."""
    from semel.errors import NotFound, WrongState
    from semel.operate import carry_out

    results: list[dict[str, Any]] = []
    failed = False
    with open_place(database, schema) as session:
        for one in ids:
            try:
                acted = carry_out(make(one), session)
            except (NotFound, WrongState) as error:
                failed = True
                explain(error)
                results.append({"job_id": one, "act": act, "error": error.code, "message": error.happened})
                continue
            results.append(_acted_json(act, acted))
            if not as_json:
                typer.echo(_acted_line(acted))
    if as_json:
        print_json({"results": results})
    if failed:
        raise typer.Exit(NOT_SO)


def _acted_json(act: str, acted: Acted) -> dict[str, Any]:
    return {
        "job_id": acted.job_id,
        "act": act,
        "before": acted.before,
        "after": acted.after,
        "new_id": acted.new_id,
        "note": acted.note,
    }


def _acted_line(acted: Acted) -> str:
    if acted.new_id is not None:
        return f"Job {acted.job_id} was {acted.before}. {acted.note}"
    after = "deleted" if acted.after is None else acted.after.value
    return f"Job {acted.job_id}: {acted.before} → {after}." + (f" {acted.note}" if acted.note else "")


def _describe(record: JobRecord) -> list[str]:
    job, now = record.job, record.as_of
    condition = job.condition(now)
    status = job.status.value if condition == job.status else f"{job.status.value}, {condition}"
    place = "the history" if record.in_history else f"queue {job.queue}"
    crashes = f", {job.crashes} crashes" if job.crashes else ""
    lines = [
        f"Job {job.id}: {job.kind}, {status}, in {place}",
        f"  attempts   {job.attempts} of {job.max_attempts}{crashes}; priority {job.priority}",
        f"  created    {moment(job.created_at, now)}",
        f"  run at     {moment(job.run_at, now)}",
    ]
    if job.locked_until is not None:
        lines.append(f"  lease to   {moment(job.locked_until, now)}, claim {record.claim}")
    if job.finished_at is not None:
        lines.append(f"  ended      {moment(job.finished_at, now)}")
    if job.unique_key is not None:
        lines.append(f"  unique     {job.unique_key}, remembered until {moment(record.unique_until, now)}")
    if record.ordering_key is not None:
        lines.append(f"  order      {record.ordering_key}")
    if job.progress is not None or job.progress_message:
        share = "" if job.progress is None else f"{job.progress:.0%} "
        lines.append(f"  progress   {share}{job.progress_message or ''}")
    lines.append(f"  payload    {json.dumps(record.payload, ensure_ascii=False)}")
    if record.result is not None:
        lines.append(f"  result     {json.dumps(record.result, ensure_ascii=False)}")
    return [*map(printable_lines, lines), *_describe_past(record)]


def _describe_past(record: JobRecord) -> list[str]:
    lines = []
    if record.job.last_error:
        lines.append(f"Last error: {printable_lines(record.job.last_error)}")
    for error in record.errors:
        lines.append(
            f"Attempt {error.get('attempt', '?')}: {error.get('type', '')}: {error.get('message', '')}"
        )
        lines += [f"    {line}" for line in printable_lines(error.get("traceback") or "").splitlines()]
    for event in record.events:
        after = "gone" if event.after is None else event.after
        why = f": {event.why}" if event.why else ""
        lines.append(
            f"{moment(event.at, record.as_of)} {event.act} by {event.who}, {event.before} → {after}{why}"
        )
    return [printable_lines(line) for line in lines]
