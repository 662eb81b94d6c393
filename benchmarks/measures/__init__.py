"""Each measure is a file: who takes part, what each does once, and the figures that come of it."""
