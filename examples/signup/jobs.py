"""The application's jobs. Run them with: semel worker signup.jobs:app"""

from __future__ import annotations

import os

import psycopg

import semel
from semel import Backoff, Cancel, JobContext, RetryPolicy
from signup.mail import compose_welcome, send
from signup.users import Connection, find_user

# 1 in earnest. `semel demo` sets 25, which makes an hour of waiting less than three minutes.
SPEED = float(os.environ.get("SIGNUP_SPEED", "1"))

app = semel.App(lease=60 / SPEED, poll=1 / SPEED)


@app.job(
    context=True,
    timeout="30 s",
    retry=RetryPolicy(max_attempts=7, backoff=Backoff(base=2 / SPEED, cap=3600 / SPEED)),
)
def welcome_email(context: JobContext, user_id: int) -> None:
    """Whatever this raises is kept with the job, and the job runs again: after 2, 4, 8 s … up to an hour."""
    with connect() as connection:
        user = find_user(connection, user_id)
    if user is None:
        raise Cancel("the user has left")
    send(compose_welcome(user, context.reference))


def connect() -> Connection:
    """A connection to the application's database, which is also the jobs'."""
    return psycopg.connect(app.url)
