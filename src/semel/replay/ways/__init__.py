"""How messages reach a job, one module a queue."""
