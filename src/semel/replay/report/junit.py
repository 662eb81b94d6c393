"""A run as JUnit XML, by the schema that Jenkins takes: a suite for each version of the code, a test case for each check."""

from __future__ import annotations

import platform
import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from semel.replay.report.wording import counted_words, expected_words, record_words
from semel.replay.results import CheckResult, CodeRun, Run, Verdict

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(run: Run) -> bytes:
    """What a CI server reads. A vacuous check is a failure of the type ``vacuous``."""
    root = Element("testsuites", name=_text(f"semel replay {run.name}"), time=_time(run.took.total_seconds()))
    for each in run.runs:
        _suite(root, run, each)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(root: Element, run: Run, each: CodeRun) -> None:
    name = f"replay.{run.name}" + (f".{each.label}" if each.label else "")
    bad = sum(check.verdict in (Verdict.FAILS, Verdict.VACUOUS) for check in each.checks)
    suite = SubElement(
        root,
        "testsuite",
        name=_text(name),
        tests=str(len(each.checks)),
        failures=str(bad),
        errors="0",
        skipped=str(sum(check.verdict is Verdict.SKIPPED for check in each.checks)),
        time=_time(sum(check.seconds for check in each.checks)),
        timestamp=run.began.strftime("%Y-%m-%dT%H:%M:%S"),
        hostname=_text(platform.node()),
    )
    listed = SubElement(suite, "properties")
    known = {"code": each.code, "seed": str(run.seed), "policy": run.policy, "expectations": run.expectations}
    for key, value in (known | run.versions).items():
        SubElement(listed, "property", name=_text(key), value=_text(value))
    for check in each.checks:
        _case(suite, name, check)


def _case(suite: Element, classname: str, check: CheckResult) -> None:
    case = SubElement(
        suite, "testcase", classname=_text(classname), name=_text(check.name), time=_time(check.seconds)
    )
    reasons = "; ".join(check.reasons)
    if check.verdict is Verdict.SKIPPED:
        SubElement(case, "skipped", message=_text(reasons))
    elif check.verdict is not Verdict.HOLDS:
        found = SubElement(case, "failure", type=check.verdict.value, message=_text(reasons))
        found.text = _text("\n".join([*_said(check), "", *check.reasons]))
        if check.evidence.logs:
            SubElement(case, "system-out").text = _text("\n".join(check.evidence.logs))


def _said(check: CheckResult) -> list[str]:
    return [
        check.title,
        f"expected: {expected_words(check.expected)}",
        f"counted: {counted_words(check.evidence)}",
        f"record: {record_words(check.evidence)}",
    ]


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _text(text: str) -> str:
    """Without what XML cannot have."""
    return _NOT_XML.sub("�", text)
