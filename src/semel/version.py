"""The version of the package; the schema has its own, in `semel.sql`."""

__version__ = "0.1.0"
