"""What is done with an order whose worker died while it charged: one policy for each job in jobs.py."""

from __future__ import annotations

import os

import semel
from shop.gateway import find_charge

# 1 in earnest. `semel demo` sets 25, which makes a minute of waiting less than three seconds.
SPEED = float(os.environ.get("SHOP_SPEED", "1"))

# The provider takes our reference as its idempotency key, and remembers keys for a day.
WITH_KEY = semel.ProviderKey(valid_for=24 * 3600 / SPEED)

# The provider can be asked. "No such charge" is believed half a minute after the last one who may have charged is gone.
WITH_LOOKUP = semel.Lookup(find=find_charge, settle=30 / SPEED)

# Nobody can tell: a person looks at the provider's list, and decides.
OR_HOLD = semel.Hold()

# A second charge now and then is acceptable (for a charge it is not: think of a reminder email).
PERHAPS_TWICE = semel.AcceptDuplicate(extra=1)

# A missing one now and then is acceptable (think of a notice on a screen).
PERHAPS_NEVER = semel.AcceptMiss()
