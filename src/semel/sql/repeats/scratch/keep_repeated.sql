-- For `semel repeats` over a file: the deliveries of what did come more than once.
CREATE TABLE repeated AS
SELECT *
FROM deliveries
WHERE ({columns}) IN (SELECT {columns} FROM deliveries GROUP BY {columns} HAVING count(*) > 1)
