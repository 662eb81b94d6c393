-- For `semel repeats` over a file: the deliveries that may repeat, in a database that ends with the connection.
CREATE TABLE deliveries ({definitions}, at_ms INTEGER NOT NULL)
