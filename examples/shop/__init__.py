"""A shop that charges cards at a payment provider, without the guard and with each of its policies. See README.md."""
