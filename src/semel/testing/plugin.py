"""semel's fixtures for pytest, which finds them by itself where semel is installed.

This module is imported in every run of pytest there, so it imports nothing and starts nothing until a test asks
for one of its fixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from semel.errors import SemelError
    from semel.queue.app import App
    from semel.replay.results import Run
    from semel.testing.databases import Prepare, TestDatabases
    from semel.testing.replay import Runs


def pytest_addoption(parser: pytest.Parser) -> None:
    """What to do where tests need a PostgreSQL and there is none; how replays are done."""
    parser.addini(
        "semel_missing_server",
        help="tests that need a PostgreSQL where there is none: fail (the default) or skip",
        default="fail",
    )
    group = parser.getgroup("semel")
    group.addoption(
        "--semel-replay-rounds", type=int, metavar="N", help="rounds of two workers at once, in replays"
    )
    group.addoption("--semel-replay-html", metavar="DIR", help="where replays write their pages [replays]")


@pytest.fixture(scope="session")
def semel_schema() -> str:
    """The schema of semel's tables; override it where the application sets another than ``semel``."""
    return "semel"


@pytest.fixture(scope="session")
def semel_prepare() -> Prepare | None:
    """Override it: a function that is given a URL once, and makes the application's own tables there."""
    return None


@pytest.fixture(scope="session")
def semel_server(
    pytestconfig: pytest.Config, semel_schema: str, semel_prepare: Prepare | None
) -> Iterator[TestDatabases]:
    """A server to make databases on: ``SEMEL_TEST_DATABASE_URL``, else one of this process's own.

    Under pytest-xdist each process has its own.
    """
    from semel.errors import SemelError
    from semel.testing.databases import open_databases

    with ExitStack() as stack:
        try:
            databases = stack.enter_context(open_databases(schema=semel_schema, prepare=semel_prepare))
        except SemelError as error:
            _give_up(pytestconfig, error)
        yield databases


@pytest.fixture
def semel_database_url(pytestconfig: pytest.Config, semel_server: TestDatabases) -> Iterator[str]:
    """The URL of this test's own database, with semel's tables; dropped after the test."""
    from semel.errors import DatabaseUnreachable

    try:
        url = semel_server.create()
    except DatabaseUnreachable as error:
        _give_up(pytestconfig, error)
    yield url
    semel_server.drop(url)


@pytest.fixture
def semel_app(semel_database_url: str) -> Iterator[Callable[..., App]]:
    """``semel_app(app)`` is a copy of the application on this test's database; enqueue through its ``jobs``.

    ``semel_app(app, in_place=True)`` points the application itself there until the test ends, so that code
    which enqueues through its own job objects is tested as it is. Other options are settings by name.
    """
    from semel.errors import ConfigurationError
    from semel.testing.pointing import pointed_to

    with ExitStack() as stack:

        def place(app: App, *, in_place: bool = False, **settings: Any) -> App:
            if not in_place:
                return stack.enter_context(app.with_database(semel_database_url, **settings))
            if settings:
                raise ConfigurationError(
                    "Settings cannot be changed in place.", remedy="Leave out in_place=True, or the settings."
                )
            return stack.enter_context(pointed_to(app, semel_database_url))

        yield place


@pytest.fixture(scope="session")
def semel_replays(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs behind `semel.testing.replay_tests`, each done once in a session."""
    from semel.testing.replay import open_runs

    return open_runs(pytestconfig, tmp_path_factory.getbasetemp())


@pytest.fixture
def semel_replay(semel_replays: Runs) -> Callable[..., Run]:
    """``semel_replay(description, rounds=…, code={"before": …, "after": …}).holds``: replays a job, as ``semel replay`` does.

    The description is a file, ``module:attribute`` or a `semel.replay.Description`.
    """
    from functools import partial

    from semel.testing.replay import replay_now

    return partial(replay_now, semel_replays)


def _give_up(config: pytest.Config, error: SemelError) -> NoReturn:
    from semel.testing.databases import VARIABLE

    wanted = config.getini("semel_missing_server")
    if wanted not in ("fail", "skip"):
        raise pytest.UsageError(f"semel_missing_server is {wanted!r}: give fail or skip")
    text = (
        f"This test needs a PostgreSQL. {error}\n"
        f"Either pip install 'semel[embedded]', or set {VARIABLE} to the URL of a server for tests."
    )
    if wanted == "skip":
        pytest.skip(text)
    pytest.fail(text, pytrace=False)
