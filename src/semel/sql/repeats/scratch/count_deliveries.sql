-- For `semel repeats` over a file: how much was counted, and from when to when.
SELECT count(*), min(at_ms), max(at_ms) FROM deliveries
