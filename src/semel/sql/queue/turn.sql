-- No statement by itself: whether this claim has a turn. {turns} claims for the same queues run at once, each until it
-- commits; :turn names the queues, and NULL asks for none. Without turns, many claimers on few processors spend their time on
-- each other: each follows, locks and looks again at every row that another one took since its snapshot. wait_for_turn.sql
-- takes the same locks.
turn AS MATERIALIZED (
    SELECT CAST(:turn AS text) IS NULL
           OR EXISTS (SELECT FROM generate_series(1, {turns}) AS place (number)
                       WHERE pg_try_advisory_xact_lock(
                           hashtextextended('{schema}.jobs ' || CAST(:turn AS text), place.number))) AS mine
)
