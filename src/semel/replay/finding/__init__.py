"""Jobs in somebody's code, found by reading it: nothing is imported or run."""

from semel.replay.finding.candidate import Candidate, Parameter, Watched
from semel.replay.finding.looking import find_jobs

__all__ = ["Candidate", "Parameter", "Watched", "find_jobs"]
