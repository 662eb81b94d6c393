-- Ends a batch of attempts, each fenced by its own (id, claim, worker): zero rows for one of them means its claim is lost.
-- Caller: store.jobs.settle. Locks: the rows of the batch in id order, FOR NO KEY UPDATE, waiting half a
-- second at most (then the caller settles the others, and this one later). Index: the key.
-- Done and cancelled jobs move to the history in this statement; one with a unique_key stays until unique_until. The look-up
-- per pair keeps this linear, and exact: a list of ids and a list of claims would let (id A, claim of B) pass.
-- The ids come through a SELECT, so that the plan does not depend on their number: the server keeps one, and plans no more.
WITH ending AS MATERIALIZED (
    SELECT pair.id, pair.claim, pair.worker, coalesce(detail.status, 'done') AS status, detail.delay, detail.run_at,
           detail.refund, detail.error || jsonb_build_object('at', clock_timestamp()) AS error, detail.summary, detail.result
      FROM (SELECT set_config('lock_timeout', '500ms', true)) AS patience
     CROSS JOIN unnest((SELECT CAST(:ids AS bigint[])), CAST(:claims AS bigint[]), CAST(:workers AS bigint[]))
           AS pair (id, claim, worker)
      LEFT JOIN jsonb_to_recordset(CAST(:details AS jsonb))
           AS detail (id bigint, claim bigint, status text, delay double precision, run_at timestamptz, refund boolean,
                      error jsonb, summary text, result jsonb)
        ON detail.id = pair.id AND detail.claim = pair.claim
), held AS MATERIALIZED (
    SELECT ending.id, ending.claim, ending.status, ending.delay, ending.run_at, ending.refund, ending.error,
           ending.summary, ending.result,
           ending.status IN ('done', 'cancelled')
               AND (job.unique_key IS NULL OR coalesce(job.unique_until <= statement_timestamp(), false)) AS leaves
      FROM (SELECT * FROM ending ORDER BY id) AS ending
     CROSS JOIN LATERAL (
        SELECT owned.unique_key, owned.unique_until FROM {schema}.jobs AS owned
         WHERE owned.id = ending.id AND owned.claim = ending.claim AND owned.worker = ending.worker
           AND owned.status = 'running'
           FOR NO KEY UPDATE) AS job
), moved AS (
    DELETE FROM {schema}.jobs WHERE id = ANY (ARRAY(SELECT id FROM held WHERE leaves))
    RETURNING id, kind, payload, attempts, max_attempts, run_at, last_error, unique_key, created_at, queue, ordering_key,
              unique_until, priority, claim, crashes, errors, meta
), stored AS (
    INSERT INTO {schema}.jobs_done
           (id, kind, payload, status, attempts, max_attempts, run_at, last_error, unique_key, created_at, queue,
            ordering_key, unique_until, priority, claim, crashes, finished_at, result, errors, meta)
    SELECT moved.id, moved.kind, moved.payload, held.status, moved.attempts, moved.max_attempts, moved.run_at,
           coalesce(held.summary, moved.last_error), moved.unique_key, moved.created_at, moved.queue, moved.ordering_key,
           moved.unique_until, moved.priority, moved.claim, moved.crashes, clock_timestamp(), held.result,
           CASE WHEN held.error IS NULL THEN moved.errors
                ELSE jsonb_path_query_array(moved.errors, '$[last - 8 to last]') || held.error END,
           moved.meta
      FROM moved JOIN held ON held.id = moved.id
), kept AS (
    UPDATE {schema}.jobs AS job
       SET status = held.status,
           attempts = job.attempts - CASE WHEN held.refund AND job.attempts > 0 THEN 1 ELSE 0 END,
           run_at = CASE WHEN held.status = 'pending'
                         THEN coalesce(held.run_at, clock_timestamp() + make_interval(secs => coalesce(held.delay, 0)))
                         ELSE job.run_at END,
           last_error = coalesce(held.summary, job.last_error),
           errors = CASE WHEN held.error IS NULL THEN job.errors
                         ELSE jsonb_path_query_array(job.errors, '$[last - 8 to last]') || held.error END,
           result = coalesce(held.result, job.result),
           unique_until = CASE WHEN held.status IN ('done', 'cancelled') THEN
                               coalesce(job.unique_until, clock_timestamp()
                                   + make_interval(secs => CAST(:remember AS double precision)))
                               ELSE job.unique_until END
      FROM held
     WHERE job.id = held.id AND NOT held.leaves
       AND job.id = ANY (ARRAY(SELECT id FROM held WHERE NOT leaves))
)
SELECT id, claim FROM held
