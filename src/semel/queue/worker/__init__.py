"""The worker: a supervisor and its children, or the same engine embedded in an application.

`supervisor` starts `child` processes and keeps their leases; a child's `engine` claims (`claiming`), runs (`attempts`) and
settles (`settling`). What a child holds stands in `slots`, shared memory that outlives it.
"""
