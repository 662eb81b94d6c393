-- For `semel repeats` over a file: the deliveries of what came more than once, which all but the activity is read from.
CREATE TABLE repeated AS
SELECT *
FROM deliveries
WHERE ({columns}) IN (SELECT {columns} FROM deliveries GROUP BY {columns} HAVING count(*) > 1)
