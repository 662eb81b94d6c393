-- Takes up to {limit} due jobs, or running ones whose lease ran out, for one attempt each.
-- Caller: store.jobs.claim. Locks: the rows taken, FOR NO KEY UPDATE, skipping locked ones. Index: jobs_live, then the key.
-- Lanes (queue, priority) are found by a loose index scan; within one, the order is run_at, id. Lanes of equal priority
-- take turns by chance. What comes back must be readable whatever a row holds: a row that breaks the answer would take the
-- whole claim with it. The limit is a literal, so that the estimate stays small and JIT stays off. Order not promised.
WITH RECURSIVE {queue/turn}, {queue/lanes}, picked AS MATERIALIZED (
    SELECT due.id
      FROM (SELECT queue, priority, run_at, id FROM lane
             WHERE (CAST(:queues AS text[]) IS NULL OR queue = ANY (CAST(:queues AS text[])))
               AND queue <> ALL (CAST(:without AS text[]))
               AND (SELECT mine FROM turn)
             ORDER BY priority DESC, random()) AS served
     {queue/due}
), taken AS (
{queue/take}
)
{queue/answer}
