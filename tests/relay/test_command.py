"""``semel relay`` as people run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.relay.brokers import Redis
from tests.relay.forwarded import make_app
from tests.support.stored import statuses
from tests.support.waiting import until

SHOP = """
import os
import semel
from semel.relay import Relay, ToSidekiq

app = semel.App()
sidekiq = ToSidekiq(os.environ["REDIS_URL"], {"note": ("NoteJob", ["number", "key"])})
relay = Relay(app, {"out": sidekiq, "other": sidekiq})
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    return tmp_path


def start(shop: Path, redis: Redis, url: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "semel", "relay", *arguments],
        cwd=shop,
        env={**os.environ, "REDIS_URL": redis.url, "SEMEL_DATABASE_URL": url, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_drain_and_the_summary(shop: Path, redis: Redis, database_url: str) -> None:
    app = make_app(database_url)
    app.jobs["note"].enqueue(1)
    app.jobs["note"].using(queue="other").enqueue(2)
    relay = start(shop, redis, database_url, "shop:relay", "--drain", "--json", "--queue", "out")
    printed, log = relay.communicate(timeout=90)
    assert relay.returncode == 0, log
    assert json.loads(printed)["queues"]["out"]["sent"] == 1
    assert "other" not in json.loads(printed)["queues"]
    assert [each.number for each in redis.read()] == [1]
    assert statuses(database_url, "other") == {"pending": 1}


def test_sigterm_ends_it(shop: Path, redis: Redis, database_url: str) -> None:
    app = make_app(database_url)
    app.jobs["note"].enqueue(1)
    relay = start(shop, redis, "postgresql://nowhere/x", "--database", database_url, SEMEL_RELAY="shop:relay")
    until(lambda: statuses(database_url, "out") == {"done": 1}, "it is sent")
    relay.send_signal(signal.SIGTERM)
    _, log = relay.communicate(timeout=60)
    assert relay.returncode == 0, log
    assert "relay stopped" in log
    redis.read()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "No relay was given."),
        (["shop:app"], "is a App, not a semel.relay.Relay"),
        (["shop:relay", "--queue", "nix"], "The relay has no queue 'nix'."),
    ],
)
def test_wrong_usage(shop: Path, redis: Redis, database_url: str, arguments: list[str], said: str) -> None:
    relay = start(shop, redis, database_url, *arguments)
    _, log = relay.communicate(timeout=60)
    assert relay.returncode == 2
    assert said in log
