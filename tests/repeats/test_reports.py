"""What is printed and written: the terminal, JSON, SVG, PNG and the page; masks, deploys, usage."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.repeats.conftest import Command

ROWS = "ref,at\n" + "".join(
    f"<script>alert({n})</script>&\"',2026-01-01T00:0{minute}:00Z\n".replace("\"'", "'")
    for n in range(3)
    for minute in (0, 6)
)
OPTIONS = ("-r", "ref", "-t", "at")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Three references that would be markup, twice each, six minutes apart."""
    (tmp_path / "h.csv").write_text(ROWS)
    return str(tmp_path / "h.csv")


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.seen = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.seen += data


def test_the_page_stands_by_itself_and_obeys_no_data(repeats: Command, path: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert repeats(path, *OPTIONS, "--html", str(page)).code == 1
    read = Page(page.read_text("utf-8"))
    assert "script" not in read.tags
    assert read.addresses == []
    assert "<script>alert(0)</script>&'" in read.seen
    assert "6 min" in read.seen or "360 s" in read.seen
    assert "default-src 'none'" in page.read_text("utf-8")
    assert not re.search(r"url\(|@import", page.read_text("utf-8"))


def test_columns_and_file_names_are_escaped_too(repeats: Command, tmp_path: Path) -> None:
    source = tmp_path / "<b>x&.csv"
    source.write_text("<i>ref,at\na,2026-01-01\na,2026-01-02\n")
    page = tmp_path / "report.html"
    assert repeats(str(source), "-r", "<i>ref", "-t", "at", "--html", str(page)).code == 1
    assert not {"i", "script"} & set(Page(page.read_text()).tags)
    assert "<b>x" not in page.read_text()


def test_the_picture_is_an_svg_with_every_bar(repeats: Command, path: str, tmp_path: Path) -> None:
    picture = tmp_path / "gaps.svg"
    repeats(path, *OPTIONS, "--svg", str(picture))
    root = ET.fromstring(picture.read_text("utf-8"))
    names = {"s": "http://www.w3.org/2000/svg"}
    assert [title.text for title in root.findall(".//s:rect/s:title", names)] == ["180 s to 10 min: 3"]


def test_the_picture_is_a_png(repeats: Command, path: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "gaps.png"
    repeats(path, *OPTIONS, "--png", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")
    assert picture.stat().st_size > 5_000


def test_without_matplotlib_a_png_says_what_to_install(
    repeats: Command, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = repeats(path, *OPTIONS, "--png", str(tmp_path / "gaps.png"))
    assert answer.code == 2
    assert "semel[repeats]" in answer.err


def test_the_histogram_in_the_terminal(repeats: Command, path: str) -> None:
    out = repeats(path, *OPTIONS).out
    assert "  180 s to 10 min  ████████████████████████████████████████ 3\n" in out
    assert "6 rows, 6 counted: 3 references, of which 3 came more than once (3 repeats)." in out


def test_what_a_terminal_would_obey_is_not_printed(repeats: Command, tmp_path: Path) -> None:
    source = tmp_path / "h.csv"
    source.write_text("ref,at\n\x1b[31mred\x07,2026-01-01\n\x1b[31mred\x07,2026-01-02\n\x1b]0;x\x07,soon\n")
    out = repeats(str(source), *OPTIONS).out
    assert not set(out) & {"\x1b", "\x07"}


def test_masks(repeats: Command, tmp_path: Path) -> None:
    source = tmp_path / "h.csv"
    rows = ["customer-00017", "customer-00018", "abc"]
    source.write_text("ref,at\n" + "".join(f"{row},2026-01-0{day}\n" for row in rows for day in (1, 2)))

    def shown(*options: str) -> list[str]:
        return [
            one["reference"][0]
            for one in repeats(str(source), *OPTIONS, "--json", *options).json()["repeats"]
        ]

    hashed = shown("--mask", "hash")
    assert hashed == shown("--mask", "hash")
    assert len(set(hashed)) == 3
    assert all(re.fullmatch("#[0-9a-f]{16}", one) for one in hashed)
    assert not set(hashed) & set(shown("--mask", "hash", "--mask-key", "of mine"))
    assert shown("--mask", "partial") == ["…", "cu…17", "cu…18"]
    assert shown() == ["abc", "customer-00017", "customer-00018"]


def deploys_file(tmp_path: Path) -> str:
    path = tmp_path / "deploys.txt"
    path.write_text("# production\n2026-01-05T09:00:00Z v1\n\n2026-01-12 09:00 UTC, v2\n1768813200 v3\n")
    return str(path)


def at_deploys(tmp_path: Path, *, spread: bool) -> str:
    """Deliveries each ten minutes for three weeks; six repeats a deploy, or as many on other days."""
    rows = [f"o{n},{1767225600 + 600 * n}\n" for n in range(3_024)]
    for number, deploy in enumerate((1767603600, 1768208400, 1768813200)):
        for again in range(6):
            at = deploy + 60 * again + (86_400 * (again - 3) + 7_200 if spread else 0)
            rows.append(f"o{number * 900 + again},{at}\n")
    path = tmp_path / "orders.csv"
    path.write_text("ref,at\n" + "".join(rows))
    return str(path)


def test_deploys_are_named_where_it_holds(repeats: Command, tmp_path: Path) -> None:
    source, deploys = at_deploys(tmp_path, spread=False), deploys_file(tmp_path)
    report = repeats(source, *OPTIONS, "--deploys", deploys, "--json").json()
    assert (report["deploys"]["holds"], report["deploys"]["at_deploys"]) == (True, 18)
    assert report["deploys"]["by_chance"] < 1
    assert "deploys" in [one["kind"] for one in report["suggests"]]
    assert (
        "18 of 18 repeats within 10 min after a deploy" in repeats(source, *OPTIONS, "--deploys", deploys).out
    )


def test_deploys_are_not_named_where_it_does_not(repeats: Command, tmp_path: Path) -> None:
    source, deploys = at_deploys(tmp_path, spread=True), deploys_file(tmp_path)
    report = repeats(source, *OPTIONS, "--deploys", deploys, "--json").json()
    assert report["deploys"]["holds"] is False
    assert "deploys" not in [one["kind"] for one in report["suggests"]]
    assert "Not at deploys: " in repeats(source, *OPTIONS, "--deploys", deploys).out
    assert repeats(source, *OPTIONS, "--json").json()["deploys"] is None


def test_deploys_are_the_tags_of_a_repository(repeats: Command, tmp_path: Path) -> None:
    source = at_deploys(tmp_path, spread=False)
    repository = tmp_path / "repository"

    def git(*words: str, at: int = 0) -> None:
        environment = {
            "GIT_COMMITTER_DATE": f"{at} +0000",
            "GIT_AUTHOR_DATE": f"{at} +0000",
            "HOME": str(tmp_path),
        }
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, cwd=repository, check=True, capture_output=True, env=environment)

    repository.mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one", at=1767603600)
    git("tag", "v1")
    git("tag", "-a", "v2", "-m", "two", at=1768208400)
    git("tag", "-a", "v3", "-m", "three", at=1768813200)
    git("tag", "-a", "other", "-m", "none", at=1767603600 - 86_400)
    words = (source, *OPTIONS, "--json", "--deploys-git", str(repository))
    report = repeats(*words, "--deploys-tags", "v*").json()
    assert (report["deploys"]["deploys"], report["deploys"]["at_deploys"]) == (3, 18)
    assert repeats(*words).json()["deploys"]["deploys"] == 4
    assert repeats(source, *OPTIONS, "--deploys-git", str(tmp_path / "none")).code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "There is nothing to read."),
        (("h.csv",), "Say what names one operation"),
        (("none.csv", *OPTIONS), "'none.csv' cannot be read: No such file or directory."),
        ((".", *OPTIONS), "cannot be read"),
        (("h.csv", "-r", "other", "-t", "at"), "The column 'other' is not there."),
        (("h.csv", *OPTIONS, "--table", "t"), "which has no tables"),
        (("h.csv", *OPTIONS, "--format", "xml"), "--format is 'xml'."),
        (("h.csv", *OPTIONS, "--mask", "much"), "--mask is 'much'."),
        (("h.csv", *OPTIONS, "--zone", "Mars"), "--zone is 'Mars'"),
        (("h.csv", *OPTIONS, "--pattern", "("), "--pattern is no regular expression"),
        (("h.csv", *OPTIONS, "--pattern", "(?P<ref>.)"), "--pattern has no group named 'at'."),
        (("h.csv", *OPTIONS, "--delimiter", "ab"), "--delimiter is one letter."),
        (("h.csv", *OPTIONS, "--since", "soon"), "--since is 'soon'"),
        (("h.csv", *OPTIONS, "--deploys", "none.txt"), "--deploys 'none.txt' cannot be read"),
        (("h.csv", *OPTIONS, "--deploys", "h.csv"), "line 1 does not begin with a time"),
        (("h.csv", *OPTIONS, "--deploy-window", "5 s"), "--deploy-window is less than a minute."),
        (("h.csv", *OPTIONS, "--html", "none/x.html"), "cannot be written"),
        (("http://x/y", *OPTIONS), "leads to no database"),
        (("postgresql://x/y", *OPTIONS), "A database has many tables."),
        (("postgresql://x/y", *OPTIONS, "--table", "t", "--pattern", "x"), "--pattern is for files."),
        (
            ("sqlite:///x", *OPTIONS, "--table", "t", "--zone", "Europe/Vienna"),
            "SQLite knows no zones by name",
        ),
        (("postgresql://x/y", *OPTIONS, "--table", "t", "--timeout", "0"), "--timeout is no time at all."),
        ((*OPTIONS, "--table", "t", "--sql"), "--sql needs to know for which database."),
    ],
)
def test_wrong_usage(
    repeats: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "h.csv").write_text("ref,at\na,2026-01-01\n")
    monkeypatch.chdir(tmp_path)
    answer = repeats(*words)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err


def test_a_password_is_in_no_report(repeats: Command, tmp_path: Path) -> None:
    from semel.cli.repeats_asked import Asked

    shown = Asked._shown_source
    asked = type("Given", (), {"source": None, "table": "t"})()
    assert (
        shown(asked, "postgresql://me:secret@db:5432/shop?password=secret") == "postgresql://db:5432/shop, t"
    )
