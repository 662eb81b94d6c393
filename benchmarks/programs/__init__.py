"""One small program a queue, run in an environment of its own; they share serving.py and marks.py, or queue.mjs."""
