"""Brokers that a relay forwards to. Each imports its client when it connects."""
