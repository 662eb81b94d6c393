"""Replay: deliver a job's messages again, two at once, and kill its workers; and say what became of the effect.

`Description` says how the job is delivered and how its effect is counted; ``semel replay`` and the pytest plugin run it.
"""

from semel.replay.description import (
    CalledFunction,
    CeleryTask,
    Command,
    Control,
    CountCalls,
    CountHttp,
    CountSql,
    Deliver,
    Description,
    GuardPlace,
    SemelJob,
    SidekiqJob,
    SqsQueue,
    Watch,
)

__all__ = [
    "CalledFunction",
    "CeleryTask",
    "Command",
    "Control",
    "CountCalls",
    "CountHttp",
    "CountSql",
    "Deliver",
    "Description",
    "GuardPlace",
    "SemelJob",
    "SidekiqJob",
    "SqsQueue",
    "Watch",
]
