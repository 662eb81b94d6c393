"""The job whose effect is a request to the outside system, whose address is in CHARGES."""

from __future__ import annotations

import os
import urllib.request


def charge(order_id: int) -> None:
    urllib.request.urlopen(os.environ["CHARGES"], data=str(order_id).encode()).close()
