"""What `semel doctor --sidekiq` finds: a configuration file, and a real Redis with what Sidekiq writes into it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis as redis_library
from tests.adapters.brokers import wait_for_port
from tests.docs.pages import ROOT
from tests.support.keeping import free_port

from semel.adapters.sidekiq.reading import read_state
from semel.doctor.sidekiq import InFlight, RedisNumbers, SidekiqNumbers, check_sidekiq, retry_horizon
from semel.doctor.sidekiq_reading import read_redis, read_sidekiq
from semel.doctor.sidekiq_words import WORDS
from semel.errors import BrokerUnreachable, ConfigurationError

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
FINE = SidekiqNumbers(keep=200 * DAY, redis=RedisNumbers())
"""Records outlive the dead set."""


def codes(numbers: SidekiqNumbers) -> set[str]:
    return {finding.code for finding in check_sidekiq(numbers)}


def on(**redis: Any) -> SidekiqNumbers:
    return replace(FINE, redis=RedisNumbers(**redis))


def test_what_fits_has_no_findings() -> None:
    assert codes(FINE) == set()
    assert codes(SidekiqNumbers(keep=200 * DAY)) == set()


def test_the_retries_take_about_three_weeks() -> None:
    assert 20 * DAY < retry_horizon(25) < 22 * DAY
    assert retry_horizon(0) == timedelta(0)


FOUND: dict[str, tuple[str, SidekiqNumbers, SidekiqNumbers]] = {
    "eviction": ("sidekiq-eviction", on(eviction="allkeys-lru"), on(eviction="noeviction")),
    "persistence": ("sidekiq-persistence", on(persists=False), on(persists=True)),
    "not shown": ("sidekiq-not-visible", on(persists=None), on(persists=True)),
    "old Redis for 7": (
        "sidekiq-redis-version",
        on(version=(6, 0), sidekiq_version=(7, 1)),
        on(version=(6, 2), sidekiq_version=(7, 1)),
    ),
    "old Redis for 8": (
        "sidekiq-redis-version",
        on(version=(6, 2), sidekiq_version=(8, 0)),
        on(version=(7, 0), sidekiq_version=(8, 0)),
    ),
    "old Sidekiq": ("sidekiq-version", on(sidekiq_version=(5, 2)), on(sidekiq_version=(6, 4))),
    "new Sidekiq": ("sidekiq-version", on(sidekiq_version=(9, 0)), on(sidekiq_version=(8, 1, 3))),
    "shutdown": (
        "sidekiq-time-out-over-lease",
        replace(FINE, timeout=90 * SECOND),
        replace(FINE, timeout=90 * SECOND, extends=True),
    ),
    "a run that a deploy cuts": (
        "sidekiq-time-out-under-run",
        replace(FINE, longest_run=40 * SECOND),
        replace(FINE, longest_run=20 * SECOND),
    ),
    "retries": (
        "sidekiq-retries-past-records",
        replace(FINE, keep=20 * DAY, dead_kept=DAY),
        replace(FINE, keep=22 * DAY, dead_kept=DAY),
    ),
    "retries of a job": ("sidekiq-retries-past-records", on(most_retries=60), on(most_retries=25)),
    "a provider that forgets before the last retry": (
        "sidekiq-provider-window",
        replace(FINE, valid_for=20 * DAY),
        replace(FINE, valid_for=22 * DAY),
    ),
    "a provider that forgets within the last run": (
        "sidekiq-provider-window",
        replace(FINE, max_retries=0, valid_for=20 * SECOND, longest_run=20 * SECOND),
        replace(FINE, max_retries=0, valid_for=21 * SECOND, longest_run=20 * SECOND),
    ),
    "a provider that forgets before the retries of a job": (
        "sidekiq-provider-window",
        replace(on(most_retries=26), valid_for=22 * DAY),
        replace(on(most_retries=25), valid_for=22 * DAY),
    ),
    "scheduled": ("sidekiq-scheduled-past-records", on(farthest=201 * DAY), on(farthest=199 * DAY)),
    "dead jobs are kept": (
        "sidekiq-dead-kept",
        replace(FINE, keep=90 * DAY),
        replace(FINE, keep=90 * DAY, dead_kept=60 * DAY),
    ),
    "dead already": ("sidekiq-dead-past-records", on(oldest_dead=201 * DAY), on(oldest_dead=20 * DAY)),
    "lost": (
        "sidekiq-lost-in-flight",
        on(in_flight=(InFlight("Charge", 5 * SECOND, "a:1", False),)),
        on(in_flight=(InFlight("Charge", 5 * SECOND, "a:1", True),)),
    ),
    "long": (
        "sidekiq-in-flight-over-lease",
        on(in_flight=(InFlight("Charge", 70 * SECOND, "a:1", True),)),
        replace(on(in_flight=(InFlight("Charge", 70 * SECOND, "a:1", True),)), extends=True),
    ),
    "Ruby in the file": ("sidekiq-not-read", replace(FINE, unread=(":timeout: <%= 1 %>",)), FINE),
}


@pytest.mark.parametrize("name", FOUND)
def test_each_is_found_where_it_is_and_nowhere_else(name: str) -> None:
    code, bad, good = FOUND[name]
    assert codes(bad) == {code}
    assert codes(good) == set()


def test_how_many_retries_a_providers_window_is_enough_for() -> None:
    """The figure's number of retries fits, and one more does not."""
    for window, fit in ((DAY, 13), (timedelta(hours=1), 7), (SECOND, 0)):
        (found,) = check_sidekiq(replace(FINE, valid_for=window))
        assert found.figure.endswith(f"{fit} fit")
        assert codes(replace(FINE, valid_for=window, max_retries=fit)) == set()
        assert codes(replace(FINE, valid_for=window, max_retries=fit + 1)) == {"sidekiq-provider-window"}
    (found,) = check_sidekiq(replace(FINE, valid_for=SECOND, longest_run=SECOND))
    assert found.figure.endswith("it is over within the first run")


def start(directory: Path, *settings: str) -> Iterator[int]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    port = free_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), *settings]
    with (directory / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for_port(port, directory)
        yield port
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A Redis as one in production is set up."""
    yield from start(
        tmp_path_factory.mktemp("redis"), "--appendonly", "yes", "--maxmemory-policy", "noeviction"
    )


@pytest.fixture
def client(port: int) -> Iterator[Any]:
    with redis_library.Redis(port=port) as opened:
        opened.flushall()
        yield opened


def look(port: int, **told: Any) -> set[str]:
    return codes(
        read_sidekiq(None, read_state(f"redis://127.0.0.1:{port}/0"), **({"keep": 200 * DAY} | told))
    )


def beat(client: Any, process: str, *, version: str = "7.3.0", alive: bool = True) -> None:
    """What a process of Sidekiq says of itself every ten seconds."""
    client.sadd("processes", process)
    if alive:
        client.hset(
            process, mapping={"info": json.dumps({"identity": process, "version": version}), "busy": 1}
        )


def test_a_redis_that_is_well_set_up_has_no_findings(client: Any, port: int) -> None:
    assert look(port) == set()
    beat(client, "host:1:abc")
    client.zadd("schedule", {json.dumps({"class": "Later"}): time.time() + 86_400})
    client.zadd("retry", {json.dumps({"class": "Again", "retry": True}): time.time()})
    client.zadd("dead", {json.dumps({"class": "Gone"}): time.time() - 86_400})
    work = {"queue": "default", "payload": json.dumps({"class": "Charge"}), "run_at": int(time.time())}
    client.hset("host:1:abc:work", "tid", json.dumps(work))
    assert look(port) == set()


SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "sidekiq-eviction": ("maxmemory-policy", {"bad": "allkeys-lru", "good": "noeviction"}),
    "sidekiq-persistence": ("appendonly", {"bad": "no", "good": "yes"}),
}


@pytest.mark.parametrize("code", SETTINGS)
def test_the_configuration_of_the_redis(client: Any, port: int, code: str) -> None:
    name, values = SETTINGS[code]
    client.config_set("save", "")
    client.config_set(name, values["bad"])
    try:
        assert look(port) == {code}
    finally:
        client.config_set(name, values["good"])
    assert look(port) == set()


def test_snapshots_persist_too(client: Any, port: int) -> None:
    client.config_set("appendonly", "no")
    client.config_set("save", "3600 1")
    try:
        assert look(port) == set()
    finally:
        client.config_set("appendonly", "yes")


ENTRIES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "far": (
        "sidekiq-scheduled-past-records",
        lambda c: c.zadd("schedule", {"{}": time.time() + 201 * 86_400}),
    ),
    "dead": ("sidekiq-dead-past-records", lambda c: c.zadd("dead", {"{}": time.time() - 201 * 86_400})),
    "retries": (
        "sidekiq-retries-past-records",
        lambda c: c.zadd("retry", {json.dumps({"retry": 60}): time.time()}),
    ),
    "version": ("sidekiq-version", lambda c: beat(c, "host:1:a", version="5.2.1")),
    "lost": (
        "sidekiq-lost-in-flight",
        lambda c: c.hset(
            "host:2:b:workers", "tid", json.dumps({"payload": {"class": "Charge"}, "run_at": time.time()})
        ),
    ),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_what_sidekiq_has_in_it(client: Any, port: int, name: str) -> None:
    code, store = ENTRIES[name]
    assert look(port) == set()
    store(client)
    assert look(port) == {code}


def test_a_providers_window_beside_what_waits_for_a_retry(client: Any, port: int) -> None:
    client.zadd("retry", {json.dumps({"class": "Charge", "retry": 26}): time.time()})
    assert look(port, valid_for=22 * DAY) == {"sidekiq-provider-window"}
    assert look(port, valid_for=26 * DAY) == set()


def test_the_command(client: Any, port: int, tmp_path: Path) -> None:
    """What is told of Ruby's classes reaches the checks, and the exit code says whether something is to be mended."""
    (tmp_path / "sidekiq.yml").write_text(":max_retries: 13\n")
    command = [
        sys.executable,
        "-m",
        "semel",
        "doctor",
        "--sidekiq",
        "sidekiq.yml",
        "--keep",
        "200 days",
        "--json",
    ]

    def semel_(*words: str) -> tuple[int, list[tuple[str, str]]]:
        done = subprocess.run(
            [*command, *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
        )
        return done.returncode, [
            (each["code"], each["figure"]) for each in json.loads(done.stdout)["findings"]
        ]

    assert semel_("--valid-for", "24 h") == (0, [])
    client.zadd("retry", {json.dumps({"class": "Charge", "retry": True}): time.time()})
    url = ("--sidekiq-redis", f"redis://127.0.0.1:{port}/0")
    assert semel_("--valid-for", "24 h", *url) == (0, [])
    client.zadd("retry", {json.dumps({"class": "Charge", "retry": 25}): time.time()})
    figure = "valid_for 1 day, 25 retries take up to 20 days: 13 fit"
    assert semel_("--valid-for", "24 h", *url) == (1, [("sidekiq-provider-window", figure)])


def test_a_job_that_runs_for_longer_than_its_lease(client: Any, port: int) -> None:
    beat(client, "host:1:a")
    work = {"payload": json.dumps({"class": "Charge"}), "run_at": int(time.time()) - 70}
    client.hset("host:1:a:work", "tid", json.dumps(work))
    assert look(port) == {"sidekiq-in-flight-over-lease"}
    assert look(port, lease=timedelta(minutes=2)) == set()


def test_what_is_no_json_of_sidekiq_is_passed_over(client: Any, port: int) -> None:
    client.zadd("retry", {"no json": 1, "[]": 2, json.dumps({"retry": "many"}): 3})
    client.hset("x:work", "tid", "no json")
    client.set("y:work", "text")
    assert look(port) == {"sidekiq-lost-in-flight"}


def test_a_namespace(client: Any, port: int) -> None:
    client.zadd("app:schedule", {"{}": time.time() + 201 * 86_400})
    assert look(port) == set()
    state = read_state(f"redis://127.0.0.1:{port}/0", namespace="app")
    assert state.scheduled == 1


def test_a_redis_that_shows_no_configuration(tmp_path: Path) -> None:
    for port in start(tmp_path, "--rename-command", "CONFIG", "", "--save", ""):
        assert look(port) == {"sidekiq-not-visible"}


def test_nothing_is_written(client: Any, port: int) -> None:
    test_a_redis_that_is_well_set_up_has_no_findings(client, port)
    before = (
        client.info("stats")["total_commands_processed"],
        client.lastsave(),
        client.info("persistence")["rdb_changes_since_last_save"],
    )
    look(port)
    assert client.info("persistence")["rdb_changes_since_last_save"] == before[2]


def test_a_redis_that_is_not_there() -> None:
    with pytest.raises(BrokerUnreachable):
        read_state(f"redis://127.0.0.1:{free_port()}/0")


FILES: dict[str, tuple[str, SidekiqNumbers]] = {
    "symbols": (
        ":timeout: 40\n:max_retries: 5\n:queues:\n  - [critical, 2]\n",
        SidekiqNumbers(timeout=40 * SECOND, max_retries=5),
    ),
    "plain names": ("timeout: 40\n", SidekiqNumbers(timeout=40 * SECOND)),
    "a section": (
        ":timeout: 8\nproduction:\n  :timeout: 50\nstaging:\n  :timeout: 3\n",
        SidekiqNumbers(timeout=50 * SECOND),
    ),
    "dead": (":dead_timeout_in_seconds: 86400\n", SidekiqNumbers(dead_kept=DAY)),
    "empty": ("", SidekiqNumbers()),
    "Ruby": (
        ':timeout: <%= ENV["T"] %>\n:max_retries: 3\n',
        SidekiqNumbers(max_retries=3, unread=(':timeout: <%= ENV["T"] %>',)),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read(tmp_path: Path, name: str) -> None:
    text, expected = FILES[name]
    file = tmp_path / "sidekiq.yml"
    file.write_text(text)
    assert read_sidekiq(file, None) == expected


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for text, said in (("a: [", "no YAML"), ("- 1", "no settings")):
        file = tmp_path / "sidekiq.yml"
        file.write_text(text)
        with pytest.raises(ConfigurationError, match=said):
            read_sidekiq(file, None)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_sidekiq(tmp_path / "none.yml", None)


def test_the_version_is_that_of_the_oldest_process(client: Any, port: int) -> None:
    beat(client, "a:1:a", version="7.3.0")
    beat(client, "b:1:b", version="6.4.1")
    beat(client, "c:1:c", alive=False)
    assert read_redis(read_state(f"redis://127.0.0.1:{port}/0")).sidekiq_version == (6, 4, 1)


def test_every_code_has_its_line_and_its_case() -> None:
    text = (ROOT / "docs/doctor.md").read_text("utf-8")
    assert [code for code in WORDS if f"`{code}`" not in text] == []
    assert {code for code, *_ in FOUND.values()} == set(WORDS)
