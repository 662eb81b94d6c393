"""Keys and fingerprints: one operation has one key, two operations have two, and what makes no stable key is refused."""

from __future__ import annotations

import datetime as dates
import enum
import hashlib
import hmac
import json
import os
import subprocess
import sys
from decimal import Decimal
from importlib import util
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.keys import OperationKey, Secret, compute_fingerprint, compute_key
from semel.errors import KeyRefused

ROOT = Path(__file__).resolve().parent.parent.parent
VECTORS = json.loads((ROOT / "tests" / "keys.json").read_text())
SECRET = Secret(b"0123456789abcdef", version=2)
NOON = dates.datetime(2024, 3, 10, 12, tzinfo=dates.UTC)


def _generator():
    spec = util.spec_from_file_location("make_key_vectors", ROOT / "scripts" / "make_key_vectors.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_vectors_are_what_the_code_computes():
    assert _generator().make() == VECTORS


def test_the_vectors_are_what_any_language_computes_from_the_text():
    secret = VECTORS["secret"]["utf8"].encode()
    for vector in VECTORS["keys"]:
        text = vector["text"].encode()
        assert vector["sha256"] == hashlib.sha256(text).hexdigest()
        assert vector["hmac"] == hmac.new(secret, text, hashlib.sha256).hexdigest()


def test_frozen_digests_never_change():
    """They are the keys of stored records: whoever changes one lets every repeat of before pass. New vectors go behind."""
    frozen = [vector[name] for vector in VECTORS["keys"][:59] for name in ("sha256", "hmac")]
    assert hashlib.sha256("".join(frozen).encode()).hexdigest() == FROZEN_KEYS
    frozen = [vector[name] for vector in VECTORS["fingerprints"][:15] for name in ("sha256", "hmac")]
    assert hashlib.sha256("".join(frozen).encode()).hexdigest() == FROZEN_FINGERPRINTS
    assert digest("order-17") == "c5444dc4be89b3a39bc67f5baec1fdad013b02971b660fb79f52777d995e7fc2"


FROZEN_KEYS = "33c2ba54a038fcda98be40a9eec8a62ec19f12feb912de561e3d5886e8b3ec09"
FROZEN_FINGERPRINTS = "3fdef428d6809d3baac2b8366acd681ae3e6ded0c63f7110f3e4adc1284301dc"


def digest(value, **options):
    return compute_key(value, **options).digest


class Shade(enum.Enum):
    RED = "red"
    NONE = None
    HALF = 0.5
    PAIR = (1, 2)


class Level(enum.IntEnum):
    LOW = 1


class Loud(str):
    __slots__ = ()

    def __str__(self):
        return "shown otherwise"

    __format__ = object.__format__


class Shown(int):
    def __str__(self):
        return "seventeen"

    __repr__ = __str__


@pytest.mark.parametrize(
    "same",
    [
        (1, Level.LOW),
        ("red", Shade.RED, ("red",)),
        ("red", Loud("red")),
        (17, Shown(17)),
        (Decimal("1.00"), Decimal("1.0"), Decimal(1), Decimal("10E-1")),
        (Decimal("1E+2"), Decimal(100), Decimal("100.000")),
        (Decimal(0), Decimal("-0.00"), Decimal("0E+5")),
        (UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), UUID("F81D4FAE7DEC11D0A76500A0C91E6BF6")),
        (
            NOON,
            NOON.astimezone(ZoneInfo("Asia/Kathmandu")),
            NOON.astimezone(dates.timezone(dates.timedelta(hours=-12))),
        ),
    ],
)
def test_one_value_has_one_key_however_it_is_written(same):
    assert len({digest(value) for value in same}) == 1


@pytest.mark.parametrize(
    "different",
    [
        ("1", 1, True, Decimal(1)),
        ("invoice 12 line 3", "invoice 1 line 23"),
        (("invoice", 12, "line", 3), ("invoice", 1, "line", 23)),
        (("a-b", "c"), ("a", "b-c"), ("a", "b", "c"), "a-b-c", ("a,s1:b", "c"), ("a", ",s1:b,s1:c")),
        ("order", "Order", "ORDER"),
        ("order", "order ", " order", "order\0"),
        ("caf\u00e9", "cafe\u0301"),
        (dates.date(2024, 3, 10), "2024-03-10", dates.datetime(2024, 3, 10, tzinfo=dates.UTC)),
        ("f81d4fae-7dec-11d0-a765-00a0c91e6bf6", UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
        ("f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"),
        (NOON, NOON + dates.timedelta(microseconds=1)),
        (
            dates.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Rome"), fold=0),
            dates.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Rome"), fold=1),
        ),
        (2**63, -(2**63), 2**64),
        (Decimal("0.1"), Decimal("0.10000000000000000000000000000000000001")),
    ],
)
def test_look_alikes_have_keys_of_their_own(different):
    assert len({digest(value) for value in different}) == len(different)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ((), "empty tuple"),
        ("", "empty string"),
        (("order", ""), "Part 2 of the key is an empty string"),
        (None, "is None"),
        (("order", None), "Part 2 of the key is None"),
        (1.0, "float"),
        (float("nan"), "float"),
        (Shade.NONE, "is None"),
        (Shade.HALF, "float"),
        (Shade.PAIR, "tuple"),
        (b"bytes", "bytes"),
        ([1], "list"),
        ({"a": 1}, "dict"),
        (((1,),), "tuple"),
        (object(), "object"),
        (dates.time(12), "time"),
        (dates.datetime(2024, 3, 10, 12), "no time zone"),  # noqa: DTZ001
        (dates.datetime.min.replace(tzinfo=dates.timezone(dates.timedelta(hours=5))), "outside the years"),
        (Decimal("NaN"), "no number"),
        (Decimal("Infinity"), "no number"),
        (Decimal("1E+999999"), "1000 digits"),
        (Decimal("1E-999999"), "1000 digits"),
        (10**1000, "1000 digits"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_what_makes_no_stable_key_is_refused(value, says):
    with pytest.raises(KeyRefused, match=says):
        compute_key(value)


def test_every_refusal_of_a_type_says_what_to_do():
    for value in ("", None, 1.5, b"", dates.datetime(2024, 1, 1)):  # noqa: DTZ001
        with pytest.raises(KeyRefused) as caught:
            compute_key(value)
        assert "Give" in caught.value.remedy


def test_a_label_is_for_people_and_can_be_off():
    assert compute_key(("order", 17, NOON, Shade.RED)).label == "order/17/2024-03-10T12:00:00+00:00/red"
    assert compute_key("order", label=False).label is None
    assert len(compute_key("x" * 5000).label) == 200
    assert "\0" not in compute_key("a\0b").label


def test_a_secret_makes_another_key_and_no_label():
    keyed = compute_key("anna@example.org", secret=SECRET)
    assert keyed.label is None
    assert keyed.version == 2
    assert keyed.digest == hmac.new(SECRET.value, keyed.text.encode(), hashlib.sha256).hexdigest()
    assert keyed.digest != digest("anna@example.org")
    assert keyed.digest != digest("anna@example.org", secret=Secret(b"0123456789abcdeF", version=2))
    assert compute_key("anna@example.org").version == 0


@pytest.mark.parametrize("make", [lambda: Secret(b"short"), lambda: Secret(b"x" * 16, version=0)])
def test_a_weak_secret_is_refused(make):
    with pytest.raises(KeyRefused):
        make()


def test_a_digest_has_64_digits_whatever_the_length():
    for key in (compute_key("x"), compute_key("x" * 100_000), compute_key(("x" * 9000, 1), secret=SECRET)):
        assert isinstance(key, OperationKey)
        assert len(key.digest) == 64
        assert set(key.digest) <= set("0123456789abcdef")


_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6)
_PARTS = st.one_of(
    _TEXTS,
    st.sampled_from(["a", ",", "s1:a,", "1", "|", "i1:1,"]),
    st.integers(-20, 20),
    st.booleans(),
    st.uuids(),
    st.dates(),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-9, max_value=9),
    st.datetimes(timezones=st.just(dates.UTC)),
)


@given(st.lists(_PARTS, min_size=1, max_size=4), st.lists(_PARTS, min_size=1, max_size=4))
def test_two_lists_of_parts_share_a_text_only_where_they_are_equal(first, second):
    same = [(type(part), part) for part in first] == [(type(part), part) for part in second]
    assert (compute_key(tuple(first)).text == compute_key(tuple(second)).text) is same


def test_the_order_of_names_does_not_matter_in_a_fingerprint():
    assert compute_fingerprint({"a": 1, "b": {"x": 1, "y": 2}}) == compute_fingerprint(
        {"b": {"y": 2, "x": 1}, "a": 1}
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": 1.0}, {"a": 1}),
        ({"a": [1, [2]]}, {"a": [1, 2]}),
        ({"a": ["b", "c"]}, {"a": ["bc"]}),
        ({"a": {"b": 1}}, {"a": {"b": "1"}}),
        ({"a": None}, {"a": "None"}),
    ],
)
def test_payloads_that_differ_have_fingerprints_that_differ(one, other):
    assert compute_fingerprint(one) != compute_fingerprint(other)


def test_equal_payloads_have_one_fingerprint():
    assert compute_fingerprint({"a": Decimal("1.00")}) == compute_fingerprint({"a": Decimal(1)})
    assert compute_fingerprint({"a": (1, 2)}) == compute_fingerprint({"a": [1, 2]})
    assert compute_fingerprint({"a": Shade.RED}) == compute_fingerprint({"a": "red"})
    assert compute_fingerprint({"a": 1}) != compute_fingerprint({"a": 1}, secret=SECRET)


def test_a_set_has_the_same_fingerprint_in_every_process():
    """The order of a set of strings changes with each interpreter's hash seed: it would refuse its own redelivery."""
    program = (
        "from semel.core.keys import compute_fingerprint as f; print(f({'tags': {'a','b','c','d','e'}}))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


@pytest.mark.parametrize("value", [object(), {1: 1, "1": 2}, dates.datetime(2024, 1, 1), Decimal("NaN")])  # noqa: DTZ001
def test_a_payload_without_a_stable_form_is_refused(value):
    with pytest.raises(KeyRefused):
        compute_fingerprint({"a": value})
