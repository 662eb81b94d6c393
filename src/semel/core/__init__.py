"""What is true of a job: values, moves and decisions. No I/O, no clock, no mutable module state."""
