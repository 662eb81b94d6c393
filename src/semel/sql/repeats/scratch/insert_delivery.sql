-- For `semel repeats` over a file; no index to keep.
INSERT INTO deliveries VALUES ({marks})
