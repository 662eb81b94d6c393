"""Wraps a job's effect and its queue from outside, for replay. Standard library only: it is loaded into old code, too."""
