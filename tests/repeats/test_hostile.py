"""Hostile files: what is wrong is told by the line, nothing is fatal, and no row is dropped without being counted."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.measure_repeats import measure
from tests.repeats.conftest import Command

from semel.repeats.formats import Wanted
from semel.repeats.lines import Text, read_lines
from semel.repeats.problems import REFUSED, Problems
from semel.repeats.tables import read_table

OPTIONS = ("-r", "ref", "-t", "at", "--json", "--limit", "1000")
GOOD = "{},2026-01-01T00:00:{:02}Z,x\n"


def report_of(
    repeats: Command, tmp_path: Path, content: bytes | str, name: str = "h.csv", *options: str
) -> Any:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return repeats(str(path), *OPTIONS, *options).json()


def lines_of(report: Any) -> dict[str, list[int]]:
    return {problem["kind"]: problem["first_lines"] for problem in report["problems"]}


def counted(report: Any) -> dict[str, int]:
    return {one["reference"][0]: one["deliveries"] for one in report["repeats"]}


def nothing_lost(report: Any, rows: int) -> None:
    refused = sum(problem["lines"] for problem in report["problems"] if problem["kind"] in REFUSED)
    assert report["counts"]["rows"] == rows == report["counts"]["deliveries"] + refused


def test_a_file_with_everything_in_it(repeats: Command, tmp_path: Path) -> None:
    content = (
        b"ref,at,note\n"
        b"a,2026-01-01T00:00:00Z,x\n"  # 2
        b"a,2026-01-01 00:00:30 UTC,\"quoted, \"\"so\"\"\nand on\"\n"  # 3 and 4
        b"a,2026-01-01T01:01:00+01:00,\0nul\n"  # 5: another zone, NUL
        b"a,1767225690,epoch\n"  # 6: a minute and a half later
        b"a,1767225720000,epoch ms\n"  # 7
        b"a,2026-01-01T00:02:30,no zone\n"  # 8
        b"a,2026-01-01T00:03:00Z,caf\xe9\n"  # 9: Latin-1
        b"a,yesterday,x\n"  # 10
        b",2026-01-01T00:00:00Z,x\n"  # 11
        b"a,,x\n"  # 12
        b"a,2026-01-01T00:00:00Z\n"  # 13
        b"a,2026-01-01T00:00:00Z,x,y,z\n"  # 14
        b"\n"  # 15
        b"a,2026-01-01T00:03:30Z,\"never closed\n"  # 16
        b"a,2026-01-01T00:04:00Z,\"odd\" end\n"  # 17
        b"a,01/Jan/2026:00:04:30 +0000,web server\n"  # 18
        b"a,\"Thu, 01 Jan 2026 00:05:00 GMT\",mail\n"  # 19
        b"a,2026/01/01 00:05:30Z," + b"m" * 1_000_000 + b"\n"  # 20
        b"a,20260101T000600Z,compact"  # 21, without an end
    )  # fmt: skip
    report = report_of(repeats, tmp_path, content)
    assert counted(report) == {"a": 13}
    assert report["repeats"][0]["gaps"] == [30.0] * 12
    assert lines_of(report) == {
        "no-reference": [11], "no-time": [12], "time-unreadable": [10], "fields": [13, 14], "encoding": [9],
        "nul": [5], "quote": [16, 17], "several-lines": [3], "no-zone": [8], "other-zone": [5],
    }  # fmt: skip
    nothing_lost(report, 18)


def test_one_stray_quote_swallows_no_other_line(repeats: Command, tmp_path: Path) -> None:
    """In the last column it would take all that follows into one field, and the record would even fit."""
    lines = ["ref,at,note\n"] + [GOOD.format(f"r{number // 2}", number % 60) for number in range(30_000)]
    lines[5] = lines[5].replace(",x", ',"x')
    lines[20_000] = lines[20_000].replace("r", '"r', 1)
    report = report_of(repeats, tmp_path, "".join(lines))
    assert (
        report["counts"]["repeated_references"] == 15_000 - 1
    )  # the reference of line 20,001 is not what it was
    assert lines_of(report)["quote"] == [6]
    assert lines_of(report)["fields"] == [20_001]
    nothing_lost(report, 30_000)


def test_stray_quotes_on_every_line_take_linear_time(repeats: Command, tmp_path: Path) -> None:
    content = "ref,at,note\n" + "".join(
        f'r{n // 2},2026-01-01T00:00:{n % 60:02}Z,"x\n' for n in range(20_000)
    )
    report = report_of(repeats, tmp_path, content)
    assert report["counts"]["repeated_references"] == 10_000
    nothing_lost(report, 20_000)


def test_a_hundred_thousand_bad_lines_are_counted_and_a_few_named(repeats: Command, tmp_path: Path) -> None:
    content = "ref,at,note\n" + "a,b\n" * 100_000 + GOOD.format("r", 1) + GOOD.format("r", 2)
    report = report_of(repeats, tmp_path, content)
    (problem,) = report["problems"]
    assert (problem["kind"], problem["lines"], len(problem["first_lines"])) == ("fields", 100_000, 10)
    assert counted(report) == {"r": 2}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "logfmt", "log"])
def test_a_line_without_an_end_is_no_reason_to_run_out_of_memory(tmp_path: Path, kind: str) -> None:
    problems = Problems()
    endless = io.StringIO("x" * (40 * 1024 * 1024) + "\nlast\n")
    assert list(read_lines(Text("", endless), problems)) == ["\n", "last\n"]
    assert problems.kinds["too-long"].lines == [1]


def test_references_that_differ_in_bytes_only_stay_different(repeats: Command, tmp_path: Path) -> None:
    rows = [
        b"caf\xe9",
        b"caf\xe8",
        b"caf\xe9",
        b"caf\\xe9",
        b"a\0b",
        b"a\0b",
        b"a\0c",
        b"a",
        b"A",
        b"a ",
        "é".encode(),
    ]
    content = b"ref,at,note\n" + b"".join(row + b",2026-01-01,x\n" for row in rows)
    report = report_of(repeats, tmp_path, content)
    assert counted(report) == {"caf\\xe9": 2, "a\0b": 2}
    assert lines_of(report)["encoding"] == [2, 3, 4]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1", "cp1252", "utf-16-le", "shift_jis"])
def test_encodings(repeats: Command, tmp_path: Path, encoding: str) -> None:
    word = "注文" if encoding in ("shift_jis", "utf-16") else "Größe"
    content = f"ref,at,note\n{word},2026-01-01T00:00:00Z,x\r\n{word},2026-01-01T00:00:05Z,x\r\n".encode(
        encoding
    )
    options = [] if encoding in ("utf-16", "utf-8-sig") else ["--encoding", encoding]
    report = report_of(repeats, tmp_path, content, "h.csv", *options)
    assert counted(report) == {word: 2}
    assert report["problems"] == []
    assert repeats(str(tmp_path / "h.csv"), *OPTIONS, "--encoding", "no-such").code == 2


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_damaged_archive_is_read_as_far_as_it_goes(repeats: Command, tmp_path: Path, pack: Any) -> None:
    import random

    noise = random.Random(1)
    rows = "".join(GOOD.format(f"r{number // 2}-{noise.random()}", number % 60) for number in range(60_000))
    packed = pack(("ref,at,note\n" + "r,2026-01-01T00:00:00Z,x\n" * 2 + rows).encode())
    whole = report_of(repeats, tmp_path, packed)
    assert whole["problems"] == []
    assert whole["counts"]["rows"] == 60_002
    cut = report_of(repeats, tmp_path, packed[: len(packed) * 3 // 4])
    (problem,) = [one for one in cut["problems"] if one["kind"] == "truncated"]
    assert 10_000 < problem["first_lines"][0] < 60_002
    assert counted(cut)["r"] == 2


def test_json_lines(repeats: Command, tmp_path: Path) -> None:
    lines = [
        '{"ref": "a", "at": "2026-01-01T00:00:00Z"}',
        '{"ref": "a", "at": 1767225605}',
        '{"ref": "a", "at": 1767225610.5}',
        '{"ref": 12345678901234567890123, "at": 1767225605000}',
        '{"ref": 12345678901234567890124, "at": 1767225605000}',
        '{"ref": "12345678901234567890123", "at": 1767225606000}',
        '{"ref": true, "at": "2026-01-01"}',
        '{"ref": null, "at": "2026-01-01"}',  # 8
        '{"at": "2026-01-01"}',  # 9
        '{"ref": {"x": 1}, "at": "2026-01-01"}',  # 10
        '{"ref": "a", "at": ["2026-01-01"]}',  # 11
        "[1, 2]",  # 12
        "nothing",  # 13
        "[" * 100_000,  # 14
        '{"ref": "a", "at": null}',  # 15
        '{"ref": "\\ud800", "at": "2026-01-01"}',  # 16: half a letter, as JSON can write it
        '{"ref": "\\ud800", "at": "2026-01-01"}',
        '{"ref": "a", "at": NaN}',  # 18
        '{"ref": "a", "at": 1e400}',  # 19
        '{"ref": "a", "at": ' + "9" * 5000 + "}",  # 20
    ]
    report = report_of(repeats, tmp_path, "\n".join(lines), "h.jsonl")
    assert counted(report) == {"a": 3, "12345678901234567890123": 2, "\\xed\\xa0\\x80": 2}
    assert lines_of(report) == {
        "no-reference": [8, 9], "no-time": [15], "time-unreadable": [18, 19, 20], "no-scalar": [10, 11],
        "not-json": [12, 13, 14], "no-zone": [7, 16, 17],
    }  # fmt: skip
    nothing_lost(report, 20)


def test_dotted_paths_and_keys_with_dots(repeats: Command, tmp_path: Path) -> None:
    lines = [
        json.dumps({"a.b": "x", "items": [{"at": "2026-01-01T00:00:00Z"}]}),
        json.dumps({"a": {"b": "x"}, "items": [{"at": "2026-01-01T00:00:09Z"}]}),
        json.dumps({"a": "flat", "items": []}),
    ]
    path = tmp_path / "h.jsonl"
    path.write_text("\n".join(lines))
    report = repeats(str(path), "-r", "a.b", "-t", "items.0.at", "--json").json()
    assert counted(report) == {"x": 2}
    assert lines_of(report) == {"no-reference": [3]}


def test_logfmt(repeats: Command, tmp_path: Path) -> None:
    content = (
        'ts=1 ref="a \\"b\\"" at=2026-01-01T00:00:00Z msg="charged, ref=none"\n'
        'at=2026-01-01T00:00:05Z ref="a \\"b\\"" flag\n'
        "no pairs here\n"
        "at=2026-01-01T00:00:05Z ref=\n"
        'at=2026-01-01T00:00:05Z ref="unclosed\n'
    )
    report = report_of(repeats, tmp_path, content, "h.logfmt")
    assert counted(report) == {'a "b"': 2}
    assert lines_of(report) == {"no-match": [3], "no-reference": [4, 5]}
    nothing_lost(report, 5)


def test_a_file_of_which_nothing_can_be_read_is_not_without_repeats(repeats: Command, tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("ref,at,note\na,soon,x\na,later,x\n")
    answer = repeats(str(path), *OPTIONS)
    assert answer.code == 2
    assert "None of 2 rows has a reference and a time that can be read (2 time-unreadable)" in answer.err


def test_masked_references_are_not_told_by_the_problems(repeats: Command, tmp_path: Path) -> None:
    content = "ref,at,note\nsecret-1,2026-01-01,x\nsecret-1,2026-01-02,x\nx,secret-2,x\n"
    path = tmp_path / "h.csv"
    path.write_text(content)
    for how in ("hash", "partial"):
        for options in (["--json"], []):
            assert "secret" not in repeats(str(path), *OPTIONS[:4], "--mask", how, *options).out
    assert "secret-2" in repeats(str(path), *OPTIONS[:4]).out


FIELD = st.text(alphabet='ab",\n\r;\0 é', max_size=8)


@settings(max_examples=300, deadline=None)
@given(lines=st.lists(st.lists(FIELD, min_size=1, max_size=4).map(",".join), max_size=30))
def test_no_line_is_lost_and_none_is_read_twice(lines: list[str]) -> None:
    """Whatever stands in a file: each of its lines belongs to one record, or is refused; and blocks change nothing."""
    text = "ref,at,x\n" + "".join(f"{line}\n" for line in lines)
    whole, problems = read(text)
    alone, alone_problems = read(text, at_once=1)
    assert whole == alone
    assert problems == alone_problems


def read(text: str, at_once: int = 256) -> tuple[list[Any], Any]:
    from unittest.mock import patch

    from semel.repeats import tables
    from semel.repeats.files import _records_of
    from semel.repeats.formats import Block

    problems = Problems()
    with patch.object(tables, "_AT_ONCE", at_once):
        lines = read_lines(Text("", io.StringIO(text, newline="\n")), problems)
        rows: list[Any] = []
        for found in read_table(lines, Wanted(("ref",), "at"), problems, delimiter=",", header=True):
            rows += _records_of(found) if isinstance(found, Block) else [found]
    return rows, {kind: (one.count, one.lines) for kind, one in problems.kinds.items()}


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from(["r1", "r2", "é", "a b"]), FIELD), max_size=40),
    stray=st.lists(st.integers(0, 39), max_size=3),
)
def test_what_a_writer_of_csv_wrote_is_read_as_it_was(rows: list[tuple[str, str]], stray: list[int]) -> None:
    import csv

    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(["ref", "at", "x"])
    for reference, note in rows:
        writer.writerow([reference, "1", note])
    found, problems = read(written.getvalue())
    assert Counter(row[1][0] for row in found) == Counter(reference for reference, _ in rows)
    assert not set(problems) & set(REFUSED)


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """Half a million references that are all different, and long: 150 MB of text; the process takes far less for it."""
    path = tmp_path / "h.csv"
    with path.open("w") as file:
        file.write("ref,at,note\n")
        filling = "f" * 250
        file.writelines(f"{filling}{number},2026-01-01T00:00:00Z,x\n" for number in range(500_000))
    out, megabytes, _ = measure(path, "ref", "at")
    assert "500,000 references, of which 0 came more than once" in out
    assert megabytes < 300
