-- A table like another, without its unique indexes but for the number that counts up. Caller: store.constraints.
CREATE TABLE {copy} LIKE {table}
