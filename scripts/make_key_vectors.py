"""Write tests/keys.json: what every language that computes keys and fingerprints must agree with.

    python scripts/make_key_vectors.py           write the file
    python scripts/make_key_vectors.py --check   say whether it is what the code computes

A part of a key is written as ``{"type": …, "value": …}``, its value as JSON text where JSON has no such type. Payloads are
plain JSON, or carry such typed values. A digest that has once been released never changes: it is the key of stored records.
"""

from __future__ import annotations

import datetime as dates
import enum
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from semel.core.keys import Secret, compute_fingerprint, compute_key

FILE: Final = Path(__file__).resolve().parent.parent / "tests" / "keys.json"
SECRET: Final = Secret(b"a secret of tests/keys.json, no real one", version=7)


class Currency(enum.Enum):
    EURO = "eur"


class Priority(enum.IntEnum):
    HIGH = 3


ENUMS: Final = {"Currency.EURO": Currency.EURO, "Priority.HIGH": Priority.HIGH}

READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "uuid": UUID,
    "date": dates.date.fromisoformat,
    "datetime": dates.datetime.fromisoformat,
    "decimal": Decimal,
    "enum": lambda value: ENUMS[value["name"]],
    "float": float,
}


def typed(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "value": value}


def read(value: Any) -> Any:
    """The value that a vector describes."""
    if isinstance(value, dict) and set(value) == {"type", "value"}:
        return READERS[value["type"]](value["value"])
    if isinstance(value, dict):
        return {name: read(each) for name, each in value.items()}
    return [read(each) for each in value] if isinstance(value, list) else value


EURO: Final = typed("enum", {"name": "Currency.EURO", "value": "eur"})
HIGH: Final = typed("enum", {"name": "Priority.HIGH", "value": 3})

SINGLE: Final = [
    *(
        typed("str", text)
        for text in (
            "order-17",
            "ORDER-17",
            "order-17 ",
            " ",
            "1",
            "true",
            "a|b,c:d",
            "s1:a,",
            "line\nbreak\ttab\0nul",
            "caf\u00e9",
            "cafe\u0301",
            "\u00df",
            "\U0001f600",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\u65e5\u672c",
            "x" * 3000,
        )
    ),
    *(typed("int", str(number)) for number in (0, 1, -1, 17, 2**63 - 1, 2**63, -(2**64), 10**40)),
    typed("bool", True),
    typed("bool", False),
    typed("uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    typed("uuid", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"),
    typed("date", "2024-02-29"),
    typed("date", "0001-01-01"),
    *(
        typed("datetime", text)
        for text in (
            "2024-03-10T12:00:00+00:00",
            "2024-03-10T13:00:00+01:00",
            "2024-03-10T17:45:00+05:45",
            "2024-03-10T00:00:00-12:00",
            "2024-03-10T12:00:00.000001+00:00",
            "2024-03-10T12:00:00.500000+00:00",
            "0987-06-05T04:03:02+00:00",
        )
    ),
    *(
        typed("decimal", text)
        for text in (
            "1.00",
            "1.0",
            "1",
            "1E+2",
            "100",
            "-0.00",
            "0",
            "0.10",
            "-12.50",
            "1E-7",
            "123456789.987654321",
        )
    ),
    EURO,
    HIGH,
]

TUPLES: Final = [
    [typed("str", "a-b"), typed("str", "c")],
    [typed("str", "a"), typed("str", "b-c")],
    [typed("str", "a"), typed("str", "b"), typed("str", "c")],
    [typed("str", "a,s1:b"), typed("str", "c")],
    [typed("int", "12"), typed("int", "3")],
    [typed("int", "1"), typed("int", "23")],
    [typed("str", "invoice"), typed("int", "12"), typed("str", "line"), typed("int", "3")],
    [typed("str", "t"), typed("datetime", "2024-03-10T13:00:00+01:00"), typed("decimal", "19.90"), EURO],
    [
        typed("uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        typed("bool", True),
        typed("date", "2024-02-29"),
        HIGH,
    ],
]

PAYLOADS: Final = [
    {},
    {"amount": typed("decimal", "19.90"), "currency": "eur"},
    {"currency": "eur", "amount": typed("decimal", "19.9")},
    {"amount": 1},
    {"amount": True},
    {"amount": "1"},
    {"amount": typed("decimal", "1.00")},
    {"amount": typed("float", "1.5")},
    {"note": None},
    {"lines": [1, 2, [3]]},
    {"lines": [1, 2, 3]},
    {"address": {"street": "Stra\u00dfe 1", "city": {"zip": "00100"}}},
    {"\u00e9": 1, "z": 2, "\U0001f600": 3},
    {"at": typed("datetime", "2024-03-10T13:00:00+01:00"), "on": typed("date", "2024-03-10")},
    {"id": typed("uuid", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"), "kind": EURO},
]


def key_vector(parts: list[dict[str, Any]]) -> dict[str, Any]:
    value = tuple(read(part) for part in parts)
    plain, keyed = compute_key(value), compute_key(value, secret=SECRET)
    return {"parts": parts, "text": plain.text, "sha256": plain.digest, "hmac": keyed.digest}


def payload_vector(payload: dict[str, Any]) -> dict[str, Any]:
    fields = read(payload)
    return {
        "payload": payload,
        "sha256": compute_fingerprint(fields),
        "hmac": compute_fingerprint(fields, secret=SECRET),
    }


def make() -> dict[str, Any]:
    return {
        "about": "Keys and fingerprints of semel. text is hashed as UTF-8: SHA-256, or HMAC-SHA-256 with the secret.",
        "secret": {"utf8": SECRET.value.decode(), "version": SECRET.version},
        "keys": [key_vector(parts) for parts in [*([part] for part in SINGLE), *TUPLES]],
        "fingerprints": [payload_vector(payload) for payload in PAYLOADS],
    }


def main() -> int:
    text = json.dumps(make(), indent=1, ensure_ascii=True) + "\n"
    if "--check" in sys.argv[1:]:
        return 0 if FILE.read_text() == text else 1
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
