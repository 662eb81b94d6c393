"""The guard: one row per business operation, so that its effect happens once however often the message comes.

`once` is where an application starts; `declaration` says what one operation is; `delivery` is what happens to one delivery,
written once for sync and async; `operation` is what the function holds while it acts.
"""
