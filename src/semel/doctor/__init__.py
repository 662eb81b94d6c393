"""Holds the numbers of a set-up against each other: leases, limits, time-outs of brokers. Reads; changes nothing."""
