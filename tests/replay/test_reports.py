"""A run as people and machines read it; nothing that is in a run can break a report."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from rich.console import Console
from tests.replay.runs import HOSTILE, after, before, check_of, hostile, run_of

from semel.replay.events import Event
from semel.replay.report.as_json import as_json, as_plain
from semel.replay.report.html import as_html
from semel.replay.report.junit import as_junit
from semel.replay.report.terminal import print_run
from semel.replay.report.wording import counted_words, expected_words, lease_words, outcome, record_words
from semel.replay.results import CheckResult, CodeRun, Evidence, Expected, Record, Run, Verdict

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "replay.md"


def terminal(run: Run, width: int = 200) -> str:
    written = StringIO()
    print_run(run, Console(file=written, width=width))
    return written.getvalue()


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [(1, 1, "exactly 1"), (0, 0, "none"), (0, 1, "at most 1"), (1, 2, "1 to 2")],
)
def test_what_is_expected(least: int, most: int, words: str) -> None:
    assert expected_words(Expected(check="x", least=least, most=most)) == words


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (Evidence(), "–"),
        (Evidence(effects=[2]), "2"),
        (Evidence(effects=[1, 1, 1]), "1 in each of 3"),
        (Evidence(effects=[2, 1, 1]), "1 (2 of 3), 2 (1 of 3)"),
        (Evidence(effects=[1], maybes=2), "1, 2 maybe"),
    ],
)
def test_what_was_counted(evidence: Evidence, words: str) -> None:
    assert counted_words(evidence) == words


def test_records() -> None:
    records = [
        Record(count=1, state="held"),
        Record(count=2, state="completed acted", claim_age=200.0, lease=60.0),
    ]
    assert (
        record_words(Evidence(records=records)) == "1 completed acted, 1 held (1 with more than one record)"
    )
    assert lease_words(Evidence(records=records)) == "200 s old, lease 60 s"
    assert (
        lease_words(Evidence(records=records, lease_ended=True)) == "200 s old, lease 60 s (ended by replay)"
    )


def test_the_outcome_says_what_was_shown() -> None:
    assert outcome(run_of(after())) == "Holds: 4 checks of the code after, all as expected."
    both = run_of(before(), after())
    assert outcome(both) == "Holds: 4 checks of the code after, all as expected; the code before failed."
    assert outcome(run_of(before())) == "Does not hold: of 4 checks of the code before, 3 fail and 1 vacuous."
    assert outcome(run_of(after(), after())).startswith("Nothing was shown: all hold of the code after, but")
    skipped = CodeRun(label="", code=".", checks=(check_of("x", Verdict.SKIPPED),), guard={})
    assert outcome(run_of(skipped)) == "Nothing was shown: no check applies."


def test_reasons_stand_under_their_check() -> None:
    lines = [line.rstrip() for line in terminal(run_of(before())).splitlines()]
    row = next(place for place, line in enumerate(lines) if line.startswith("two-at-once"))
    assert re.search(r"exactly 1 +1 \(3 of 100\), 2 \(97 of 100\) +– +✗ fails +12\.3$", lines[row])
    assert lines[row + 1] == "    97 of 100 operations had more than 1 effects (the most: 2)"
    assert lines[row + 2].startswith("killed-on-return")


def test_of_a_reason_with_a_log_in_it_the_terminal_has_its_ends() -> None:
    check = msgspec.structs.replace(
        before().checks[0], reasons=("it did not start:\nTraceback\n  a\n  b\nKeyError: 1",)
    )
    shown = terminal(run_of(msgspec.structs.replace(before(), checks=(check,))))
    assert "    it did not start: … KeyError: 1\n" in shown


def test_two_versions_stand_side_by_side() -> None:
    shown = terminal(run_of(before(), after()))
    row = next(line for line in shown.splitlines() if line.startswith("killed-on-return"))
    assert re.search(r"2, 1 maybe +– +✗ fails +1 +held +✓ holds", row)
    skipped = next(line for line in shown.splitlines() if line.startswith("changed-payload"))
    assert "– skipped" in skipped
    assert "before: the watched call was never hit" in shown


@pytest.mark.parametrize("width", [20, 60, 1000])
def test_the_table_stands_in_any_width(width: int) -> None:
    assert "Holds:" in terminal(run_of(before(), after()), width)


ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {
        "name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname",
        "id", "package", "file", "log", "url",
    },
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "time", "classname", "group"},
    "failure": {"type", "message"},
    "skipped": {"type", "message"},
    "system-out": set(),
}  # fmt: skip
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "skipped", "system-out"},
}
NEEDED = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "property": {"name", "value"},
    "testcase": {"name"},
}


@pytest.mark.parametrize("run", [run_of(before(), after()), hostile()], ids=["plain", "hostile"])
def test_junit_fits_the_schema_that_jenkins_has(run: Run) -> None:
    """The elements and attributes of its xunit plugin's junit-10.xsd, as far as this writes them."""
    root = ElementTree.fromstring(as_junit(run))
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag], element.tag
        assert set(element.attrib) >= NEEDED.get(element.tag, set()), element.tag
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set()), element.tag
        if "time" in element.attrib:
            assert re.fullmatch(r"[0-9]{1,3}\.[0-9]*", element.attrib["time"])


def test_junit_has_a_case_for_each_check_and_label() -> None:
    root = ElementTree.fromstring(as_junit(run_of(before(), after())))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("9", "4", "0")
    assert [suite.get("name") for suite in root] == [
        "replay.charge-order.before",
        "replay.charge-order.after",
    ]
    assert root[1].get("skipped") == "1"
    cases = {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}
    vacuous = cases["replay.charge-order.before", "look-alikes"].find("failure")
    assert vacuous is not None
    assert (vacuous.get("type"), vacuous.get("message")) == ("vacuous", "the watched call was never hit")
    failed = cases["replay.charge-order.before", "two-at-once"].find("failure")
    assert failed is not None
    assert failed.get("type") == "fails"
    assert "counted: 1 (3 of 100), 2 (97 of 100)" in (failed.text or "")
    skipped = cases["replay.charge-order.after", "changed-payload"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "The description has no `changed`."
    assert len(cases["replay.charge-order.after", "two-at-once"]) == 0


def test_json_has_a_stable_shape() -> None:
    read = json.loads(as_json(run_of(before(), after())))
    assert list(read) == [
        "holds", "outcome", "name", "began", "seed", "policy", "expectations", "versions", "runs", "took_seconds",
    ]  # fmt: skip
    assert (read["holds"], read["began"], read["took_seconds"]) == (True, "2026-03-04T05:06:07Z", 83.5)
    assert [(each["label"], each["holds"]) for each in read["runs"]] == [("before", False), ("after", True)]
    check = read["runs"][0]["checks"][1]
    assert list(check) == ["name", "title", "verdict", "reasons", "expected", "evidence", "seconds"]
    assert check["verdict"] == "fails"
    assert check["evidence"]["events"][0]["point"] == "begin"
    assert as_plain(hostile())["name"] == HOSTILE


def test_the_page_of_documents_names_every_field() -> None:
    text = DOCUMENT.read_text("utf-8")
    shape = text[text.index("{holds, outcome") : text.index("`effects` has a number")]
    named = set(re.findall(r"\w+", shape))
    for part in (Run, CodeRun, CheckResult, Expected, Evidence, Record, Event):
        assert set(part.__struct_fields__) - {"took"} <= named, part.__name__


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [
            value or "" for name, value in attributes if name in ("src", "href") or name.startswith("on")
        ]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("run", [run_of(before(), after()), hostile()], ids=["plain", "hostile"])
def test_the_page_stands_for_itself(run: Run) -> None:
    text = as_html(run)
    page = Page(text)
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert page.addresses == []
    assert "url(" not in text
    assert "@import" not in text


def test_the_page_escapes_everything() -> None:
    text = as_html(hostile())
    assert "<script" not in text
    assert "\x00" not in text
    assert "\x1b" not in text
    assert text.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; &quot;quotes&quot;") >= 10


def test_the_page_has_what_a_reader_signs_for() -> None:
    run = run_of(before(), after())
    shown = Page(as_html(run, machine="ci-7, 2 processors")).text
    for said in (
        "charge-order",
        outcome(run),
        "2026-03-04 05:06:07 to 05:07:30 UTC (83.5 s)",
        "ci-7, 2 processors",
        "Celery 5.7.0",
        "4711",
        run.policy,
        run.expectations,
        "v1.4 (commit 0a1b2c3 2026-02-01)",
        "Two workers get the same message at once",
        "1 (3 of 100), 2 (97 of 100)",
        "100 of 100 rounds overlapped",
        "65 s old, lease 60 s",
        "1 each: held",
        "killed at return (exit -9)",
        "scope, job_type, key",
        "two-at-once went red: 38 of 40 operations had 2 effects",
        "✗ fails",
        "○ vacuous",
        "✓ holds",
        "– skipped",
        "12.3 ms",
        "Traceback: no such queue",
        "Signature",
    ):
        assert said in shown, said


def test_a_long_log_is_cut_and_says_so() -> None:
    one = before().checks[0]
    many = check_of(
        "two-at-once", Verdict.FAILS, reasons=("x",), events=one.evidence.events * 100, logs=["line\n" * 500]
    )
    run = run_of(CodeRun(label="", code=".", checks=(many,), guard={}))
    text = as_html(run)
    assert "600 more are in the JSON." in text
    assert text.count("line\n") < 50
