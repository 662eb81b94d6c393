"""The welcome email, and how it is sent."""

from __future__ import annotations

import os
import smtplib
from email.message import EmailMessage

from signup.users import User

SENDER = "hello@signup.example"
DOMAIN = "signup.example"


def compose_welcome(user: User, reference: str) -> EmailMessage:
    """``reference`` is the same over all attempts of one job, so that a second copy can be known as one."""
    message = EmailMessage()
    message["From"] = SENDER
    message["To"] = user.email
    message["Subject"] = f"Welcome, {user.name}"
    message["Message-ID"] = f"<{reference}@{DOMAIN}>"
    message.set_content(f"Hello {user.name},\n\nyour account is ready.\n")
    return message


def send(message: EmailMessage) -> None:
    """Hand the message to the mail server at ``SIGNUP_SMTP``; raises where the server does not accept it."""
    host, _, port = os.environ.get("SIGNUP_SMTP", "127.0.0.1:8025").rpartition(":")
    with smtplib.SMTP(host, int(port), local_hostname=DOMAIN, timeout=10) as server:
        server.send_message(message)
