"""Every source finds exactly the repeats that are there: none missing, none too many, with their times and gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.repeats.conftest import (
    DATABASES,
    FILES,
    Command,
    Delivery,
    execute,
    expected,
    found,
    make_history,
    write_file,
)

COLUMNS = ("-r", "order", "-r", "tenant", "-t", "at", "--limit", "100000", "--json")
MakeTable = Callable[[str, Sequence[Delivery]], str]


def truth(history: Sequence[Delivery]) -> dict[tuple[str, ...], tuple[int, int, int, list[int]]]:
    return {
        reference: (
            len(times),
            times[0],
            times[-1],
            [later - earlier for earlier, later in pairwise(times)],
        )
        for reference, times in expected(history).items()
    }


def check(report: Any, history: Sequence[Delivery]) -> None:
    known = truth(history)
    assert found(report) == known
    counts = report["counts"]
    named = [delivery for delivery in history if delivery[0]]
    assert counts["rows"] == len(history)
    assert counts["without_reference"] == len(history) - len(named)
    assert counts["deliveries"] == len(named)
    assert counts["references"] == len({delivery[:2] for delivery in named})
    assert counts["repeated_references"] == len(known)
    assert counts["repeats"] == sum(figures[0] - 1 for figures in known.values())
    assert sum(bar["gaps"] for bar in report["gaps"]) == counts["repeats"]
    assert report["more"] == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dialect", DATABASES)
def test_a_table_gives_exactly_its_repeats(
    repeats: Command, make_table: MakeTable, dialect: str, seed: int
) -> None:
    history = make_history(seed)
    answer = repeats(make_table(dialect, history), "--table", "deliveries", *COLUMNS)
    assert answer.code == 1
    check(answer.json(), history)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", FILES)
def test_a_file_gives_exactly_its_repeats(repeats: Command, tmp_path: Path, kind: str, seed: int) -> None:
    history = make_history(seed)
    path = tmp_path / f"history.{kind}"
    options = write_file(path, history) or ["-r", "order", "-r", "tenant", "-t", "at"]
    answer = repeats(str(path), *options, "--limit", "100000", "--json")
    assert answer.code == 1
    check(answer.json(), history)


def test_standard_input_is_read(repeats: Command, tmp_path: Path) -> None:
    history = make_history(4)
    path = tmp_path / "history.csv.gz"
    write_file(path, history)
    check(repeats("-", "--format", "csv", *COLUMNS, stdin=path.read_bytes()).json(), history)


@pytest.mark.parametrize("source", [*DATABASES, "csv"])
def test_without_repeats_the_exit_code_is_0(
    repeats: Command, make_table: MakeTable, tmp_path: Path, source: str
) -> None:
    history = [delivery for delivery in make_history(1) if delivery[:2] not in expected(make_history(1))]
    path = tmp_path / "history.csv"
    write_file(path, history)
    words = [str(path)] if source == "csv" else [make_table(source, history), "--table", "deliveries"]
    answer = repeats(*words, *COLUMNS)
    assert answer.code == 0, answer.err
    assert answer.json()["repeats"] == []


@pytest.mark.parametrize("source", [*DATABASES, "csv"])
def test_since_and_until_narrow_it(
    repeats: Command, make_table: MakeTable, tmp_path: Path, source: str
) -> None:
    history = make_history(2)
    path = tmp_path / "history.csv"
    write_file(path, history)
    words = [str(path)] if source == "csv" else [make_table(source, history), "--table", "deliveries"]
    since, until = "2026-03-03T00:00:00+00:00", "2026-03-06T12:00:00+02:00"
    report = repeats(*words, *COLUMNS, "--since", since, "--until", "2026-03-06T10:00:00").json()
    assert report == repeats(*words, *COLUMNS, "--since", since, "--until", until).json()
    inside = [
        delivery
        for delivery in history
        if "2026-03-03T00:00:00" <= delivery[2].isoformat() < "2026-03-06T10:00:00"
    ]
    assert 0 < len(expected(inside)) < len(expected(history))
    assert found(report) == truth(inside)
    assert report["counts"]["deliveries"] == sum(1 for delivery in inside if delivery[0])


@pytest.mark.parametrize("source", [*DATABASES, "csv"])
def test_a_limit_says_how_many_more(
    repeats: Command, make_table: MakeTable, tmp_path: Path, source: str
) -> None:
    history = make_history(3)
    path = tmp_path / "history.csv"
    write_file(path, history)
    words = [str(path)] if source == "csv" else [make_table(source, history), "--table", "deliveries"]
    answer = repeats(*words, "-r", "order", "-r", "tenant", "-t", "at", "--limit", "4")
    most = sorted(expected(history).values(), key=lambda times: (-len(times), times[0]))
    assert f"… and {len(most) - 4} more (--limit)." in answer.out
    report = repeats(*words, *COLUMNS[:6], "--limit", "4", "--json").json()
    assert [one["deliveries"] for one in report["repeats"]] == [len(times) for times in most[:4]]
    assert report["counts"]["repeated_references"] == len(most)
    assert report["more"] == len(most) - 4


def test_all_sources_group_gaps_alike(repeats: Command, make_table: MakeTable, tmp_path: Path) -> None:
    history = make_history(5)
    path = tmp_path / "history.csv"
    write_file(path, history)
    reports = [repeats(str(path), *COLUMNS).json()]
    reports += [
        repeats(make_table(dialect, history), "--table", "deliveries", *COLUMNS).json()
        for dialect in DATABASES
    ]
    for report in reports[1:]:
        assert report["gaps"] == reports[0]["gaps"]
        assert report["suggests"] == reports[0]["suggests"]
        assert report["repeats"] == reports[0]["repeats"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("source", [*DATABASES, "csv"])
def test_times_as_numbers(
    repeats: Command, make_table: MakeTable, tmp_path: Path, source: str, unit: str
) -> None:
    history = [(o, t, m.replace(microsecond=0)) for o, t, m in make_history(6, 80)]
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    numbers = [(o or "", t, round(m.timestamp()) * per_second) for o, t, m in history]
    if source == "csv":
        path = tmp_path / "numbers.csv"
        path.write_text("order,tenant,at\n" + "".join(f'"{o}",{t},{n}\n' for o, t, n in numbers))
        report = repeats(str(path), *COLUMNS).json()
    else:
        url = make_table(source, [])
        mark = '"' if source == "postgresql" else "`"
        values = ", ".join(f"('{o}', '{t}', {n})" for o, t, n in numbers)
        execute(
            url,
            f"CREATE TABLE numbers ({mark}order{mark} varchar(80), tenant varchar(9), at bigint)",
            f"INSERT INTO numbers VALUES {values}",
        )
        report = repeats(url, "--table", "numbers", *COLUMNS, "--time-unit", unit).json()
        if source == "sqlite":
            assert repeats(url, "--table", "numbers", *COLUMNS).json() == report
        if source == "postgresql":
            refused = repeats(url, "--table", "numbers", *COLUMNS)
            assert refused.code == 2
            assert "--time-unit" in refused.err
    assert found(report) == truth(history)


@pytest.mark.parametrize("zone", ["+02:00", "Europe/Vienna"])
@pytest.mark.parametrize("source", ["postgresql", "mysql", "sqlite", "csv"])
def test_times_without_a_zone_are_in_the_one_that_is_said(
    repeats: Command, make_table: MakeTable, tmp_path: Path, source: str, zone: str
) -> None:
    rows = [("a", "x", "2026-07-01 12:00:00"), ("a", "x", "2026-07-01 12:05:00")]
    if source == "csv":
        path = tmp_path / "naive.csv"
        path.write_text("order,tenant,at\n" + "".join(f"{','.join(row)}\n" for row in rows))
        answer = repeats(str(path), *COLUMNS, "--zone", zone)
    else:
        url = make_table(source, [])
        mark = '"' if source == "postgresql" else "`"
        kind = {"postgresql": "timestamp", "mysql": "datetime", "sqlite": "text"}[source]
        execute(
            url,
            f"CREATE TABLE naive ({mark}order{mark} varchar(80), tenant varchar(9), at {kind})",
            *(f"INSERT INTO naive VALUES {row}" for row in rows),
        )
        answer = repeats(url, "--table", "naive", *COLUMNS, "--zone", zone)
    named = zone == "Europe/Vienna"
    if named and source in ("sqlite", "mysql"):  # no names there; MariaDB's table of zones is empty here
        assert answer.code == 2, answer.out
        return
    assert answer.json()["repeats"][0]["first"] == "2026-07-01T10:00:00Z"
    assert answer.json()["problems"] == []
