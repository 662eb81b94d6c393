"""Signing up: where a user and a job begin together."""

from __future__ import annotations

from signup.jobs import welcome_email
from signup.users import Connection, User, add_user


def sign_up(connection: Connection, name: str, email: str) -> User:
    """Store the user and the job in the caller's transaction: both are there after its commit, or neither."""
    user = add_user(connection, name, email)
    welcome_email.using(tx=connection).enqueue(user_id=user.id)
    return user
