"""Sign one person up: python -m signup "Ada Lovelace" ada@example.org"""

from __future__ import annotations

import sys

from psycopg.errors import UniqueViolation

from signup.jobs import app, connect
from signup.registration import sign_up
from signup.users import create_tables


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    name, email = arguments
    with app, connect() as connection:  # commits at the end of the block, rolls back if it raises
        create_tables(connection)
        try:
            user = sign_up(connection, name, email)
        except UniqueViolation:
            print(f"{email} has signed up before.", file=sys.stderr)
            return 1
    print(f"{user.name} is user {user.id}; the welcome email is a job now.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
