"""The questions that tell whether a job can be made safe, and the reasons to stop."""
