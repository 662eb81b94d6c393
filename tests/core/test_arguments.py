from __future__ import annotations

import itertools
import json
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from timeit import repeat
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.arguments import Signature
from semel.errors import ArgumentError, ArgumentsTooLarge, ConfigurationError, PayloadUnreadable

if TYPE_CHECKING:
    from somewhere import Context  # type: ignore[import-not-found]


class Colour(Enum):
    RED = "red"


@dataclass
class Line:
    article: str
    price: Decimal


class Address(msgspec.Struct):
    city: str


class Options(TypedDict, total=False):
    loud: bool


@dataclass
class Tree:
    name: str
    branches: list[Tree]


class NotJson:
    pass


def everything(
    text: str,
    number: int,
    share: float,
    flag: bool,
    nothing: None,
    lines: list[Line],
    address: Address,
    options: Options,
    pair: tuple[int, str],
    at: datetime,
    day: date,
    hour: time,
    wait: timedelta,
    key: uuid.UUID,
    amount: Decimal,
    colour: Colour,
    mode: Literal["a", "b"],
    maybe: int | None,
    either: int | str,
    table: dict[str, list[int]],
) -> None: ...


VALUES: dict[str, Any] = {
    "text": "naïve 😀 \\u0000",
    "number": 10**30,
    "share": 0.1,
    "flag": True,
    "nothing": None,
    "lines": [Line("tea", Decimal("1.50"))],
    "address": Address("York"),
    "options": {"loud": True},
    "pair": (1, "x"),
    "at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "hour": time(3, 4),
    "wait": timedelta(days=1, seconds=1.5),
    "key": uuid.UUID(int=7),
    "amount": Decimal("1.50"),
    "colour": Colour.RED,
    "mode": "b",
    "maybe": None,
    "either": "x",
    "table": {"a": [1, 2]},
}


def handler(number: int, text: str = "hello", *, loud: bool = False) -> None: ...


def untyped(value, other: Any = None, some: list = [], table: dict[str, Any] | None = None): ...  # type: ignore[no-untyped-def,type-arg] # noqa: B006


def spread(first: str, *rest: int, last: bool = True) -> None: ...


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as they come out at the other end, through what jsonb does to them."""
    signature = Signature.of(function)
    stored = json.loads(signature.encode(args, kwargs))
    return signature.decode(json.dumps(dict(sorted(stored.items(), reverse=True))))


def test_every_type_comes_back_as_it_was_sent() -> None:
    args, kwargs = call(everything, **VALUES)
    assert dict(zip(VALUES, args, strict=True)) == VALUES
    assert kwargs == {}


def test_arguments_are_stored_by_name_and_defaults_left_out() -> None:
    signature = Signature.of(handler)
    assert signature.encode((3,)) == b'{"number":3}'
    assert json.loads(signature.encode((3, "x"), {"loud": True})) == {"number": 3, "text": "x", "loud": True}
    assert signature.decode(b'{"number":3}') == ((3, "hello"), {"loud": False})
    assert signature.decode('{"loud":true,"text":"x","number":3}') == ((3, "x"), {"loud": True})


def test_a_default_is_the_functions_own_object() -> None:
    (_, _, some, _), _ = call(untyped, 1)
    assert some is (untyped.__defaults__ or ())[1]


def test_a_function_without_parameters() -> None:
    signature = Signature.of(lambda: None)
    assert signature.encode() == b"{}"
    assert signature.decode(b"{}") == ((), {})


def test_variadic_arguments_are_a_list_under_their_name() -> None:
    assert json.loads(Signature.of(spread).encode(("a", 1, 2), {"last": False}))["rest"] == [1, 2]
    assert call(spread, "a", 1, 2, last=False) == (("a", 1, 2), {"last": False})
    assert call(spread, "a") == (("a",), {"last": True})
    with pytest.raises(ArgumentError, match="rest"):
        call(spread, "a", "b")


def test_names_that_msgspec_would_refuse() -> None:
    def odd(__x: int, self: int, class_: str, field0: int) -> None: ...

    assert call(odd, 1, 2, "c", 4) == ((1, 2, "c", 4), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "argument", "words"),
    [
        ((), {}, "number", "lacks"),
        ((1,), {"colour": 2}, "colour", "no argument"),
        ((1,), {"number": 2}, "number", "twice"),
        ((1, "x", True), {}, None, "2 positional"),
        (("x",), {}, "number", "`int`"),
        ((True,), {}, "number", "`int`"),
        ((1.0,), {}, "number", "`int`"),
        ((None,), {}, "number", "`int`"),
        ((1, 2), {}, "text", "`str`"),
        ((1, "a\0b"), {}, "text", "NUL"),
        ((1, "a\ud800"), {}, "text", "surrogate"),
        ((1, object()), {}, "text", "object"),
        ((10**4_290,), {}, "number", "digits"),
        ((10**9_000,), {}, "number", "digits"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    args: tuple[Any, ...], kwargs: dict[str, Any], argument: str | None, words: str
) -> None:
    with pytest.raises(ArgumentError, match=words) as caught:
        Signature.of(handler).encode(args, kwargs)
    assert caught.value.argument == argument
    assert "handler" in str(caught.value)
    assert "Nothing was stored" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share", float("nan")),
        ("share", float("inf")),
        ("at", VALUES["at"].replace(tzinfo=None)),
        ("amount", Decimal("NaN")),
        ("lines", [Line(3, Decimal(3))]),  # type: ignore[arg-type]
        ("lines", [Line("te\0a", Decimal(3))]),
        ("table", {"a\0": [1]}),
        ("table", {"a": [1, "x"]}),
        ("mode", "c"),
        ("pair", (1, "x", 2)),
        ("options", {"loud": 3}),
        ("colour", "blue"),
    ],
)
def test_wrong_values_deep_inside_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        Signature.of(everything).encode((), VALUES | {name: value})
    assert caught.value.argument == name


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"x", datetime.now(UTC), Decimal(1), {1: 2}, [{"a": {2: 3}}], float("nan"), NotJson(), [[b"x"]]],
)
def test_an_untyped_parameter_takes_only_what_json_gives_back(value: Any) -> None:
    for name in ("value", "other"):
        with pytest.raises(ArgumentError, match=name):
            Signature.of(untyped).encode((), {"value": 1, name: value})
    with pytest.raises(ArgumentError, match="table"):
        Signature.of(untyped).encode((), {"value": 1, "table": {"key": value}})


def test_a_structure_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ArgumentError, match="value"):
        Signature.of(untyped).encode((loop,))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("depth", [99, 150, 500, 900, 5_000])
def test_deep_nesting_is_carried_or_refused(depth: int) -> None:
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]

    def typed(value: list[list[Any]]) -> None: ...

    for function in (untyped, typed):
        if depth < 100:
            assert call(function, deep)[0][0] == deep
        else:
            with pytest.raises(ArgumentError, match=r"value.*(nested|recursion)"):
                Signature.of(function).encode((deep,))


def test_types_that_contain_themselves_and_object() -> None:
    def grow(tree: Tree, anything: object) -> None: ...

    tree = Tree("a", [Tree("b", [])])
    assert call(grow, tree, [1]) == ((tree, [1]), {})
    with pytest.raises(ArgumentError, match="anything"):
        call(grow, tree, tree)


@given(json_values)
def test_any_json_value_comes_back_equal(value: Any) -> None:
    assert call(untyped, value)[0][0] == value


@given(st.text(st.characters()))
def test_a_text_comes_back_equal_or_is_refused(text: str) -> None:
    try:
        args, _ = call(handler, 1, text)
    except ArgumentError:
        assert "\0" in text or any("\ud800" <= each <= "\udfff" for each in text)
    else:
        assert args == (1, text)


def test_the_limit_names_the_size_and_the_largest_argument() -> None:
    signature = Signature.of(handler)
    assert len(signature.encode((1, "x" * 65_507))) <= 65_536
    with pytest.raises(ArgumentsTooLarge, match=r"70,0\d\d bytes.*65,536.*'text'") as caught:
        signature.encode((1, "x" * 70_000))
    assert caught.value.argument == "text"
    with pytest.raises(ArgumentsTooLarge, match="limit of 5"):
        signature.encode((1,), limit=5)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"{}", "'number': it is missing"),
        (b'{"number":1,"colour":2}', "'colour'"),
        (b'{"number":"x"}', "'number'"),
        (b'{"number":1.0}', "'number'"),
        (b'{"number":1,"loud":1}', "'loud'"),
        (b'{"field0":1}', "'field0'"),
        (b"[1]", "`object`"),
        (b'{"number":1', "truncated"),
        (b"", "truncated"),
        (b"\xff", "payload"),
        (b'{"number":1,"text":"\xff"}', "payload"),
        ('{"number":1,"text":"\ud800"}', "payload"),
        (b'{"number":1,"text":' + b"[" * 100_000, "payload"),
    ],
)
def test_an_unreadable_payload_names_the_argument(payload: bytes | str, words: str) -> None:
    with pytest.raises(PayloadUnreadable, match=words):
        Signature.of(handler).decode(payload)


def test_a_naive_time_in_a_payload_is_refused() -> None:
    def at(when: datetime | None, all_of_them: list[datetime]) -> None: ...

    signature = Signature.of(at)
    signature.decode(b'{"when":"2026-01-02T03:04:05+00:00","all_of_them":[]}')
    with pytest.raises(PayloadUnreadable, match="'when'"):
        signature.decode(b'{"when":"2026-01-02T03:04:05","all_of_them":[]}')
    with pytest.raises(PayloadUnreadable, match="'all_of_them'"):
        signature.decode(b'{"when":null,"all_of_them":["2026-01-02T03:04:05"]}')


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_any_payload_is_read_or_refused(payload: bytes | str) -> None:
    with pytest.raises(PayloadUnreadable):
        Signature.of(handler).decode(payload)


def test_the_context_is_left_out_and_its_annotation_never_read() -> None:
    def with_context(context: Context, number: int) -> Context: ...

    signature = Signature.of(with_context, skip_first=True)
    assert signature.encode((3,)) == b'{"number":3}'
    for function in (lambda: None, lambda *_args: None):
        with pytest.raises(ConfigurationError, match="context"):
            Signature.of(function, skip_first=True)


def test_what_has_no_signature_is_refused() -> None:
    for function in (3, type("Opaque", (), {"__signature__": "nonsense", "__call__": None})()):
        with pytest.raises(ConfigurationError, match="signature"):
            Signature.of(function)  # type: ignore[arg-type]


def test_an_annotation_that_cannot_be_resolved() -> None:
    def lost(number: Context) -> None: ...

    with pytest.raises(ConfigurationError, match=r"'number' of .*lost.*'Context'.*TYPE_CHECKING"):
        Signature.of(lost)


def not_json(value: NotJson) -> None: ...
def not_json_inside(value: dict[str, list[NotJson]]) -> None: ...
def not_json_optional(value: NotJson | None) -> None: ...
def not_json_union(value: NotJson | int) -> None: ...
def a_complex(value: complex) -> None: ...
def two_strings(value: datetime | str) -> None: ...
def not_json_spread(*value: NotJson) -> None: ...
def keywords(**value: int) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        not_json,
        not_json_inside,
        not_json_optional,
        not_json_union,
        a_complex,
        two_strings,
        not_json_spread,
        keywords,
    ],
)
def test_what_json_cannot_carry_is_refused_at_the_declaration(function: Callable[..., Any]) -> None:
    with pytest.raises(ConfigurationError, match=rf"{function.__name__}.*value|value.*{function.__name__}"):
        Signature.of(function)


def test_partials_methods_and_callable_objects() -> None:
    class Sender:
        def send(self, line: Line) -> None: ...
        def __call__(self, line: Line) -> None: ...

    line = Line("tea", Decimal("1.5"))
    for function in (Sender().send, Sender()):
        assert call(function, line) == ((line,), {})
    assert call(partial(handler, 3), "x") == (("x",), {"loud": False})
    assert call(partial(handler, text="x"), 3) == ((3,), {"text": "x", "loud": False})


def test_decoding_is_fast() -> None:
    """Generous: about 0.5 µs here; what it must notice is a per-call walk of the signature (tens of µs)."""
    signature = Signature.of(handler)
    payload = b'{"number":3,"text":"hello"}'
    best = min(repeat(lambda: signature.decode(payload), number=1_000, repeat=7)) / 1_000
    assert best < 10e-6


def scalar_call(first: int, second: str, third: bool | None = None, fourth=None, fifth: int | float = 0): ...  # type: ignore[no-untyped-def]


NUMBERS = [0, True, -(2**63), 2**64, 10**30, 10**4_000, 10**4_216, 10**5_000]
TEXTS = ["", "a\0b", "\ud800", "\\u0000", '\n\t\\"', "naïve 😀", "x" * 4_500, "x" * 6_000]
ODD = (*NUMBERS, *TEXTS, None, False, 0.5, math.nan, Colour.RED, date(2026, 1, 2))


def outcome(signature: Signature, args: Any, kwargs: Any) -> bytes | tuple[type[Exception], str]:
    try:
        return signature.encode(args, kwargs, limit=5_000)
    except ArgumentError as error:
        return type(error), str(error)


@pytest.mark.parametrize("count", range(6))
def test_a_call_whose_types_show_that_it_fits_is_stored_as_any_other(count: int) -> None:
    """What is not looked at value by value is refused, and encoded, exactly as what is."""
    quick = Signature.of(scalar_call)
    slow = replace(quick, scalars=frozenset(), named=())
    usual = (1, "x", None, 2, 0.5)[:count]
    for place, value in itertools.product(range(count), ODD):
        args = (*usual[:place], value, *usual[place + 1 :])
        assert outcome(quick, args, {}) == outcome(slow, args, {})
        kwargs = dict(zip(quick.positional, args, strict=False))
        assert outcome(quick, (), kwargs) == outcome(slow, (), kwargs)
        others = {"fifth": 1}, {"other": 1}, dict(reversed(kwargs.items()))
        for other in others:
            assert outcome(quick, args, other) == outcome(slow, args, other)
            assert outcome(quick, (), other) == outcome(slow, (), other)
    assert outcome(quick, usual, {}) == outcome(slow, usual, {})
    assert outcome(quick, (), {"first": 1, "other": "x"}) == outcome(slow, (), {"first": 1, "other": "x"})


def test_text_over_the_limit_is_refused() -> None:
    with pytest.raises(ArgumentsTooLarge, match="'first'"):
        Signature.of(spread).encode(("x" * 100,), limit=100)


@given(st.integers(), st.text())
def test_any_number_and_text_that_fit_come_back(number: int, text: str) -> None:
    signature = Signature.of(scalar_call)
    encoded = outcome(signature, (number, text), {})
    assert encoded == outcome(replace(signature, scalars=frozenset()), (number, text), {})
    if isinstance(encoded, bytes):
        assert signature.decode(encoded)[0][:2] == (number, text)


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (lambda: None, {()}),
        (handler, {(int,), (int, str)}),
        (spread, {(str,)}),
        (lambda one, *, two: None, set()),
    ],
)
def test_which_calls_are_known_to_fit(function: Callable[..., Any], calls: set[Any]) -> None:
    assert Signature.of(function).scalars == calls


def test_a_handler_of_many_parameters_does_not_list_every_call() -> None:
    def wide(a=1, b=1, c=1, d=1, e=1, f=1, g=1, h=1): ...  # type: ignore[no-untyped-def]

    signature = Signature.of(wide)
    assert len(signature.scalars) < 1_000
    assert json.loads(signature.encode((None,) * 8)) == dict.fromkeys("abcdefgh")


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("more", [(), (True,), (True, 5, None)], ids=len)
@pytest.mark.parametrize("alike", [True, False])
def test_many_calls_are_encoded_and_refused_as_one_by_one(
    alike: bool, more: tuple[Any, ...], place: int, value: Any
) -> None:
    signature = Signature.of(scalar_call)
    ends = more if alike else ()
    calls: list[tuple[Any, ...]] = [(1, "one", *ends), (2, "two", *more), (3, "three", *ends)]
    calls[1] = (*calls[1][:place], value, *calls[1][place + 1 :])

    def one_by_one() -> list[bytes]:
        return [signature.encode(call, limit=5_000) for call in calls]

    try:
        expected: Any = one_by_one()
    except ArgumentError as error:
        expected = type(error), str(error)
    try:
        found: Any = signature.encode_many(calls, limit=5_000)
    except ArgumentError as error:
        found = type(error), str(error)
    assert found == expected


def test_alike_calls_of_scalars_are_encoded_at_once() -> None:
    def many(function: Callable[..., Any], *calls: tuple[Any, ...]) -> list[bytes]:
        found = Signature.of(function).many
        return [] if found is None else found.encode(calls)

    assert many(lambda: None, (), ()) == [b"{}", b"{}"]
    assert many(handler, (1,), (2,)) == [b'{"number":1}', b'{"number":2}']
    assert many(spread, ("a",), ("b",)) == [b'{"first":"a"}', b'{"first":"b"}']
    for calls in ((1,), (2, "x")), ((1,), ("x",)), ((), ()), ((1, "\0"),), ((1, "\ud800"),):
        assert many(handler, *calls) == [], calls
    assert many(lambda one, *, two: None, (1,)) == []


def test_no_calls_and_too_many_arguments() -> None:
    signature = Signature.of(scalar_call)
    assert signature.encode_many([]) == []
    with pytest.raises(ArgumentError, match="at most"):
        signature.encode_many([(1, "x"), (1, "x", None, 2, 0.5, 7)])
    with pytest.raises(ArgumentsTooLarge):
        signature.encode_many([(1, "x"), (1, "x" * 100)], limit=100)
