"""What `semel demo` is made of.

`story` is the order of events; it drives the sign-up application of examples/ (found by `example`) on a
PostgreSQL of its own (`stage`), against a mail server that refuses (`mail_server`), with real workers that it
kills (`worker`). `figures` reads what happened out of the database and the mail server's record, `promises`
holds it against what was promised, `screen` and `report` show it. `charges` is the second act, on the same stage.
"""
