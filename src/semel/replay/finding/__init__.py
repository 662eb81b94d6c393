"""Jobs in somebody's code, found by reading it: nothing is imported or run."""

from semel.replay.finding.candidate import Candidate, Parameter, Watched
from semel.replay.finding.looking import code_folder, find_functions, find_jobs

__all__ = ["Candidate", "Parameter", "Watched", "code_folder", "find_functions", "find_jobs"]
