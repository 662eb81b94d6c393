"""What a note says: from the declaration, for every effect and every way in; the same text each time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from tests.docs.pages import ROOT

import semel
from semel.core.durations import describe
from semel.core.effects import promise
from semel.core.measured import Runs
from semel.errors import ConfigurationError, PayloadUnreadable
from semel.note.crashes import NO, crash_points
from semel.note.html import to_html
from semel.note.markdown import to_markdown
from semel.note.measured import Measurement
from semel.note.origin import Origin, read_origin
from semel.note.page import Items, Page, Section, Table, code
from semel.note.retention import propose
from semel.note.ways import Kind, Way
from semel.note.writing import write_note

DAY = timedelta(days=1)


def text_of(shop: ModuleType, name: str, **told: Any) -> str:
    return to_markdown(write_note(Origin(target=f"shop:{name}", **told), getattr(shop, name)))


def section(text: str, title: str) -> str:
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_key_is_worked_out_from_the_annotations(shop: ModuleType) -> None:
    said = section(text_of(shop, "charge_order"), "The operation")
    key = semel.core.keys.compute_key(42)
    assert '`{"order_id": 42, "amount": 42}`' in said
    assert f"`{key.text}`".replace("|", "\\|") in said
    assert f"`{key.digest[:16]}`" in said
    assert "label, for people | `42`" in said


def test_the_key_is_worked_out_from_an_example(shop: ModuleType) -> None:
    said = section(text_of(shop, "mail", example={"customer": 7, "day": "2026-02-01"}), "The operation")
    assert "i1:7,d10:2026-02-01," in said, "the day is read as a date, as a message brings it"
    assert semel.core.keys.compute_key((7, __import__("datetime").date(2026, 2, 1))).digest[:16] in said


def test_an_example_of_every_type_of_a_key(shop: ModuleType) -> None:
    assert "s5:small,u36:00000000-0000-4000-8000-000000000042,n3:9.9," in text_of(shop, "many")


def test_where_no_example_can_be_made_up_the_note_says_so(shop: ModuleType) -> None:
    assert "No worked example" in section(text_of(shop, "opaque"), "The operation")
    assert "i1:3," in section(text_of(shop, "opaque", example={"thing": 3}), "The operation")


def test_an_example_that_is_no_call_is_refused(shop: ModuleType) -> None:
    with pytest.raises((ConfigurationError, PayloadUnreadable)):
        text_of(shop, "mail", example={"nobody": 7})
    with pytest.raises((ConfigurationError, PayloadUnreadable)):
        text_of(shop, "mail", example={"customer": "x", "day": "soon"})


def test_a_secret_shows_neither_text_nor_digest_nor_label(shop: ModuleType) -> None:
    said = section(text_of(shop, "private"), "The operation")
    assert "HMAC" in said
    assert not re.search(r"semel-key|[0-9a-f]{16}", said)


def test_every_argument_has_its_part(shop: ModuleType) -> None:
    said = section(text_of(shop, "charge_order"), "What counts as a repeat")
    assert "| `order_id` | in the key" in said
    assert "| `amount` | in the fingerprint: another value" in said
    assert "| `note` | ignored" in said
    assert "`op`" not in said, "callers do not pass it"
    assert "is taken for a repeat" in section(text_of(shop, "many"), "What counts as a repeat")


WAYS: Mapping[str, tuple[list[str], list[str]]] = {
    "charge_order": (
        [
            "job `charge_order` of the semel queue `money`",
            "schedule `nightly`: `0 2 * * *` in `Europe/London`",
        ],
        ["plain call", "Celery task", "Amazon SQS queue"],
    ),
    "mail": (
        [
            "a plain call of `shop.mail`",
            "Amazon SQS queue `orders`, 10 at a time, by the consumer `shop.consumer`",
            "`shop.both`",
        ],
        ["Celery task", "semel queue"],
    ),
    "settle": (
        [
            "Celery task `shop.settle`",
            "transport `redis`",
            "beat entry `nightly`",
            "a plain call of `shop.settle`",
        ],
        ["Amazon SQS queue", "semel queue `"],
    ),
    "missed": (
        [
            "a plain call of `shop.missed`",
            "`shop.both`",
            "Amazon SQS queue `returns`, by the handler of an own loop `shop.looped`",
            "a queue of Amazon SQS, by the Lambda handler `shop.on_lambda`",
        ],
        ["Celery task", "`shop.consumer`"],
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_all_ways_in_that_the_code_shows_and_no_others(shop: ModuleType, name: str) -> None:
    said = section(text_of(shop, name), "All ways in").split("Not seen from here")
    there, not_there = WAYS[name]
    assert [way for way in there if way not in said[0]] == []
    assert [way for way in not_there if way in said[0]] == []
    assert "a Sidekiq class" in said[1]


def test_a_way_in_of_another_module_is_found_where_it_is_named(shop: ModuleType, tmp_path: Any) -> None:
    (tmp_path / "elsewhere.py").write_text(
        "from semel.adapters.sqs import Consumer\nimport shop\nlater = Consumer('refunds', shop.missed)\n"
        "@shop.once.operation('missed', key='order_id')\ndef twin(op, order_id): ...\n"
    )
    assert "refunds" not in text_of(shop, "missed")
    said = text_of(shop, "missed", modules=("elsewhere",))
    assert "queue `refunds`, 10 at a time, by the consumer `elsewhere.later`" in said
    assert "also declared with this job type: `elsewhere.twin`" in said


def test_what_is_not_guarded_is_refused(shop: ModuleType) -> None:
    for found in (shop.unguarded, shop.Size, shop.celery, shop.app):
        with pytest.raises(ConfigurationError, match="guard"):
            write_note(Origin(target="shop:x"), found)
    with pytest.raises(ConfigurationError, match="2 guarded functions"):
        write_note(Origin(target="shop:both"), shop.both)
    assert "`mail`: one operation" in text_of(shop, "consumer"), "a consumer of one function stands for it"
    assert "`missed`: one operation" in text_of(shop, "looped")
    assert "`missed`: one operation" in text_of(shop, "on_lambda")


OUTSIDE = {
    "hold": (semel.Hold(), ("held: no delivery acts any more", "not unless", "until the person", "a person")),
    "provider key": (
        semel.ProviderKey(valid_for="2 h"),
        (
            "within 2 h of the first use it is sent again with the same reference; after that it is held",
            "not while the provider keeps the key (2 h)",
            "no",
            "after that a person",
        ),
    ),
    "provider key, then a look-up": (
        semel.ProviderKey(valid_for="2 h", then=semel.Lookup(print, settle="30 s")),
        ("after that the look-up is asked", "2 h", "no", "after that the look-up"),
    ),
    "lookup": (
        semel.Lookup(print, settle="30 s", looks=7),
        ("asked again (7 times at most)", "wrongly after 30 s", "no", "look-up"),
    ),
    "duplicate": (semel.AcceptDuplicate(extra=2), ("at most 2 more", "yes, at most 3", "no", "this policy")),
    "miss": (semel.AcceptMiss(), ("completed as missed", "no", "yes", "this policy")),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_each_crash_point_of_an_outside_effect(name: str) -> None:
    effect, words = OUTSIDE[name]
    before, claimed, inside, done, after = crash_points(effect, explicit=True, stores=True)
    assert [before.twice, claimed.twice, after.twice] == [NO, NO, NO]
    assert "op.acting()" in claimed.point
    assert before.leads_to == "nothing is stored; the next delivery acts"
    assert "the next delivery acts: nothing can have happened" in claimed.leads_to
    assert "each further delivery is a repeat" in after.leads_to
    shown = (inside.leads_to, inside.twice, inside.missing, inside.decides)
    assert [word for word, cell in zip(words, shown, strict=True) if word not in cell] == []
    assert inside.leads_to == done.leads_to
    twice = promise(effect).never_more_than != "1"
    assert twice == inside.twice.startswith("yes") == done.twice.startswith("yes")
    assert (promise(effect).completed_means == "0 or 1") == inside.missing.startswith("yes")
    assert not done.missing.startswith("yes"), "it happened"


def test_without_a_point_of_no_return_every_point_after_the_claim_gets_the_policy() -> None:
    points = crash_points(semel.Hold(), explicit=False, stores=True)
    assert len(points) == 4
    assert points[1].point.startswith("after the claim, anywhere")
    assert "held" in points[1].leads_to


def test_the_crash_points_of_a_row() -> None:
    points = crash_points(semel.Row(), explicit=True, stores=True)
    assert {point.twice for point in points} == {NO}
    assert "rolled" in points[1].leads_to
    assert "held" in points[2].leads_to


def test_the_points_are_those_of_the_declaration(shop: ModuleType) -> None:
    """`mail` acts from the start, `charge_order` says where; `rows` is one commit."""
    assert "anywhere until the end of the function" in section(text_of(shop, "mail"), "Effect and policy")
    assert "before op.acting()" in section(text_of(shop, "charge_order"), "Effect and policy")
    assert "before the commit" in section(text_of(shop, "rows"), "Effect and policy")


LEASES = {
    "charge_order": "A claim holds for 1 min, on the database's clock; extended while the function runs, up to its longest "
    "run of 5 min",
    "mail": "A claim holds for 2 min, on the database's clock; not extended; it has to cover the declared "
    "longest run of 2 min",
    "rows": "it holds as long as that is open, and no lease counts",
}


@pytest.mark.parametrize("name", LEASES)
def test_the_lease_is_the_declared_one(shop: ModuleType, name: str) -> None:
    assert LEASES[name] in section(text_of(shop, name), "Lease")


def runs(longest: timedelta) -> Runs:
    first = datetime(2026, 1, 1, tzinfo=UTC)
    return Runs(
        job_type="x", count=100, p99=longest / 2, longest=longest, first=first, last=first + DAY, past_lease=3,
        longest_past_lease=longest,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "longest", "said"),
    [
        ("charge_order", timedelta(minutes=5), "5 min; covered: a claim holds for 5 min"),
        ("charge_order", timedelta(minutes=6), "6 min; NOT covered: a claim holds for 5 min only"),
        ("mail", timedelta(minutes=2), "2 min; covered: a claim holds for 2 min"),
        ("mail", timedelta(minutes=3), "3 min; NOT covered: a claim holds for 2 min only"),
        ("rows", timedelta(days=1), "1 day; no lease counts"),
    ],
)
def test_beside_the_lease_stands_the_longest_run(
    shop: ModuleType, name: str, longest: timedelta, said: str
) -> None:
    measured = Measurement(runs=runs(longest), asked=True)
    written = section(
        to_markdown(write_note(Origin(target=f"shop:{name}"), getattr(shop, name), measured)), "Lease"
    )
    assert f"| the longest | {said} |" in written
    assert f"| 99 of 100 took at most | {describe(longest / 2)} |" in written
    assert "| runs | 100 |" in written
    assert "| completed after their lease had ended | 3 |" in written


DECLARED = """
import semel
once = semel.Once("shop.db")

@once.operation("few", key="n", max_unsure=2, max_takeovers=9, store_result=False, keep="30 days")
def few(op: semel.Operation, n: int) -> None: ...
"""


def test_limits_and_what_is_stored_are_the_declared_ones(make_module: Callable[[str], ModuleType]) -> None:
    shop = make_module(DECLARED)
    text = text_of(shop, "few")
    assert "Held after 2 attempts that nobody can tell about, or 9 takeovers" in text
    assert "none is stored, so it returns nothing" in section(text, "What counts as a repeat")
    assert "and returns nothing: no result is stored" in section(text, "Effect and policy")
    assert "stored result" not in section(text, "Effect and policy")
    assert "kept now: 30 days after completion" in section(text, "Retention")


def test_a_key_is_told_as_it_is_made(shop: ModuleType) -> None:
    assert "The key is computed by a function of `customer`, `day`." in text_of(shop, "mail")
    assert "The key is made of `order_id`." in text_of(shop, "charge_order")


def test_retention_is_proposed_from_the_latest_redelivery_and_nothing_is_deleted(shop: ModuleType) -> None:
    told = section(text_of(shop, "mail", longest_redelivery="100 days"), "Retention")
    assert "kept now: 90 days" in told
    assert "told by --longest-redelivery: 100 days" in told
    assert (
        "proposed: 102 days (the latest redelivery that is known, the lease and a day); what is kept now does not"
        in told
    )
    assert "this note deletes nothing" in told
    assert "keep them for 102 days" in section(text_of(shop, "mail", longest_redelivery="100 days"), "Risks")
    assert "until 102 days have passed" in text_of(shop, "mail", longest_redelivery="100 days")
    known = text_of(shop, "charge_order")
    assert "proposed: at least 32 days" in known
    assert "what is kept now covers it, as far as it is known" in known
    assert "until 90 days have passed" in section(known, "How to revert"), "what is not known may come later"
    assert "proposed: nothing" in section(text_of(shop, "rows"), "Retention")


def test_retention_is_longer_than_the_latest_redelivery() -> None:
    semel_way = Way(kind=Kind.SEMEL, text="", retries=2 * DAY, kept=30 * DAY)
    lease = timedelta(minutes=1)
    found = propose([semel_way], keep=90 * DAY, lease=lease, told=None)
    assert (found.longest, found.proposed, found.enough) == (32 * DAY, 34 * DAY, True)
    assert found.unknown, "run_at"
    assert not propose([semel_way], keep=33 * DAY, lease=lease, told=None).enough
    told = propose([semel_way], keep=90 * DAY, lease=lease, told=100 * DAY)
    assert (told.longest, told.enough, told.unknown) == (100 * DAY, False, ())
    sqs = propose([Way(kind=Kind.SQS, text="", kept=28 * DAY)], keep=90 * DAY, lease=lease, told=None)
    assert (sqs.longest, sqs.unknown) == (28 * DAY, ())
    nothing = propose([Way(kind=Kind.CALL, text="")], keep=90 * DAY, lease=lease, told=None)
    assert (nothing.longest, nothing.proposed, nothing.enough) == (None, None, False)


def test_the_risks_are_of_the_effect_of_the_declaration_and_doctors(shop: ModuleType) -> None:
    settle = section(text_of(shop, "settle"), "Risks")
    assert "[celery-early-ack]" in settle
    assert "[celery-no-limit]" in settle
    assert "look-up that answers not done too early" in settle
    assert "[app-personal-key]" not in section(text_of(shop, "private"), "Risks"), "it has a secret"
    assert "SQLite" in section(text_of(shop, "missed"), "Risks")
    assert "SQLite" not in section(text_of(shop, "charge_order"), "Risks")


REVERTING = {
    "charge_order": (
        ["`once=…`", "max_attempts=1", "`semel.operations`"],
        ["@guard", "On SQS", "transaction=True"],
    ),
    "settle": (["`@guard(…)`", "`acks_late`", "`semel_operations`"], ["`once=…`", "On SQS"]),
    "mail": (["`@….operation(…)`", "On SQS"], ["`once=…`", "`@guard(…)`"]),
}


@pytest.mark.parametrize("name", REVERTING)
def test_how_to_revert_fits_the_queue_and_the_database(shop: ModuleType, name: str) -> None:
    said = section(text_of(shop, name), "How to revert")
    there, not_there = REVERTING[name]
    assert [words for words in there if words not in said] == []
    assert [words for words in not_there if words in said] == []


def test_a_note_is_the_same_each_time(shop: ModuleType) -> None:
    for name in ("charge_order", "mail", "settle", "rows", "private"):
        assert text_of(shop, name) == text_of(shop, name)


def test_a_note_is_one_page(shop: ModuleType) -> None:
    for name in ("charge_order", "mail", "settle", "rows"):
        assert len(text_of(shop, name).splitlines()) < 130


def test_what_users_write_is_never_markup() -> None:
    evil = "a|b `c` </code><script>alert(1)</script> *d*\n# e"
    page = Page(
        code(evil),
        Origin(target="x:y").to_line(),
        (Section("s", (Items((code(evil),)), Table(("h",), ((code(evil),),)))),),
    )
    shown = to_html(page)
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 4
    markdown = to_markdown(page)
    assert "\n# e" not in markdown
    assert "| `` a\\|b `c` </code>" in markdown


def test_plain_text_is_no_markup_of_html_either() -> None:
    page = Page(
        "a < b & <i>", Origin(target="x:y").to_line(), (Section("<s>", (Items(("<script>1</script>",)),)),)
    )
    shown = to_html(page)
    assert not re.search("<i>|<s>|<script>", shown)
    assert shown.count("a &lt; b &amp; &lt;i&gt;") == 2, "in the title and the heading"


def test_a_page_of_html_loads_nothing(shop: ModuleType) -> None:
    shown = to_html(write_note(Origin(target="shop:mail"), shop.mail))
    assert not re.search(r"(src|href)=|url\(|@import|<script", shown)
    assert shown.startswith("<!doctype html>")
    assert shown.count("<table>") == shown.count("</table>") >= 3


@pytest.mark.parametrize(
    "origin",
    [
        Origin(target="a:b"),
        Origin(
            target="a:b",
            example={"x": "--> <!-- ü", "y": [1, None]},
            longest_redelivery="14 days",
            modules=("c", "d"),
        ),
    ],
)
def test_how_it_was_asked_for_is_read_back(origin: Origin) -> None:
    line = origin.to_line()
    assert line.count("-->") == 1
    assert read_origin(f"{line}\n# x") == origin
    assert read_origin("# no note") is None


def test_the_page_of_the_documents_says_what_is_in_a_note() -> None:
    text = (ROOT / "docs/note.md").read_text("utf-8")
    source = (ROOT / "src/semel/note/building.py").read_text("utf-8")
    titles = re.findall(r'Section\(\s*"([^"]+)"', source)
    assert len(titles) == 9
    assert [title for title in titles if title not in text] == []
