"""A sign-up application: a user and the job of the welcome email are stored in one transaction. See README.md."""
