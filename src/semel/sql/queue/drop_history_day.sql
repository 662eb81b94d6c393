-- Drops a day that was taken out of the history. Caller: store.upkeep.
DROP TABLE {schema}.{day}
