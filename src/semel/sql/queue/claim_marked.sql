-- As claim.sql, but of lanes that the worker knows, each from its mark on: what lies before a mark is not read. What is due
-- there all the same (a late commit, a job given back, a lease that ended) is found by sweep.sql.
-- Caller: store.marks.claim_marked. Locks: the rows taken, FOR NO KEY UPDATE, skipping locked ones. Index: jobs_live, then
-- the key. Lanes come as arrays in the order to serve; a mark is (run_at, id) of a row. Jobs become visible in another order
-- than they are stored in, so a lane is read from a second ago in any case. The limit is a literal, so that the estimate
-- stays small and JIT stays off. Order not promised.
WITH {queue/turn}, picked AS MATERIALIZED (
    SELECT due.id
      FROM (SELECT lane.queue, lane.priority,
                   least(lane.run_at, statement_timestamp() - interval '1 second') AS run_at,
                   CASE WHEN lane.run_at < statement_timestamp() - interval '1 second' THEN lane.id ELSE 0 END AS id
              FROM unnest(CAST(:lanes AS text[]), CAST(:priorities AS smallint[]), CAST(:run_ats AS timestamptz[]),
                          CAST(:ids AS bigint[])) WITH ORDINALITY AS lane(queue, priority, run_at, id, place)
             WHERE (SELECT mine FROM turn)
             ORDER BY lane.place) AS served
     {queue/due}
), taken AS (
{queue/take}
)
{queue/answer}
