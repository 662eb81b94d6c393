-- No statement by itself: what was `taken`; or one row of NULLs where this claim had no turn. claim.sql and claim_marked.sql end
-- with it.
SELECT * FROM taken
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM turn WHERE NOT mine
