-- For `semel repeats` over a file: every delivery, in a database that ends with the connection.
CREATE TABLE deliveries ({definitions}, at_ms INTEGER NOT NULL)
