"""A description is read from TOML or Python; what is wrong with it is said before anything is sent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from semel.errors import ConfigurationError
from semel.replay import CalledFunction, CeleryTask, CountCalls, CountHttp, CountSql, SqsQueue
from semel.replay.reading import read_description

WHOLE = """
name = "charge-order"
rounds = 120
patience = "1 min"

[deliver]
by = "celery"
app = "shop.tasks:app"
task = "shop.charge"
options = ["--pool", "prefork"]

[watch]
call = "shop.provider.charge"

[message]
order_id = "{n}"
email = "buyer-{n}@example.test"

[look_alike]
order_id = "{n}"

[count]
by = "sql"
query = "SELECT count(*) FROM charges WHERE order_id = :order_id AND at > now() - '00:30:00'::interval"
database = "${REPLAY_DATABASE}"

[guard]
operation = "shop.tasks:charge"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPLAY_DATABASE", "postgresql://db/shop")
    return tmp_path


def test_a_whole_description_is_read(folder: Path) -> None:
    (folder / "replay.toml").write_text(WHOLE)
    found = read_description("replay.toml")
    assert found.deliver == CeleryTask(
        app="shop.tasks:app", task="shop.charge", options=["--pool", "prefork"]
    )
    assert isinstance(found.count, CountSql)
    assert found.count.database == "postgresql://db/shop"
    assert (found.rounds, found.patience, found.redelivery) == (120, "1 min", 0)
    assert found.message == {"order_id": "{n}", "email": "buyer-{n}@example.test"}


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('name = "charge-order"', "", "In replay.toml: Object missing required field `name`"),
        ('name = "charge-order"', 'name = "../x"', "name is letters"),
        ("rounds = 120", 'rounds = "many"', "In replay.toml, rounds: Expected `int`, got `str`"),
        ("rounds = 120", "rounds = 0", "rounds is at least 1"),
        ("rounds = 120", "round = 120", "Object contains unknown field `round`"),
        ('by = "celery"', 'by = "celry"', "deliver.by: Invalid value 'celry'"),
        ('task = "shop.charge"', "", "deliver: Object missing required field `task`"),
        (
            'app = "shop.tasks:app"',
            'app = "shop.tasks.app"',
            "deliver.app is 'shop.tasks.app', not module:name",
        ),
        ('patience = "1 min"', 'patience = "soon"', "patience is 'soon': not a duration"),
        ('call = "shop.provider.charge"', "", "watch has call or http"),
        ('call = "shop.provider.charge"', 'call = "a.b"\nhttp = "http://x"', "watch has call or http"),
        ('call = "shop.provider.charge"', 'call = "a.b"\nvariable = "X"', "go with watch.http"),
        ('call = "shop.provider.charge"', 'call = "charge"', "watch.call is 'charge', not a dotted name"),
        (
            'call = "shop.provider.charge"',
            'call = "TODO: the call"',
            "watch.call is still to be filled in (TODO: the call)",
        ),
        ('call = "shop.provider.charge"', 'http = "api.example"', "not an address that begins with"),
        (
            'call = "shop.provider.charge"',
            'http = "http://x"\nonly = "("',
            "watch.only is no regular expression",
        ),
        (
            'order_id = "{n}"\nemail = "buyer-{n}@example.test"',
            "order_id = 1",
            "message is the same for each operation",
        ),
        ('[look_alike]\norder_id = "{n}"', "", "look_alike is not given"),
        (
            '[look_alike]\norder_id = "{n}"',
            '[look_alike]\nemail = "buyer-1@example.test"',
            "look_alike makes the same",
        ),
        (
            '[look_alike]\norder_id = "{n}"',
            '[look_alike]\norder_id = "{n}"\n[changed]\norder_id = 1',
            "changed makes the same",
        ),
        (":order_id AND", ":order AND", "count.query names 'order', which is no field of message"),
        (
            "${REPLAY_DATABASE}",
            "${NOT_SET_ANYWHERE}",
            "count.database names ${NOT_SET_ANYWHERE}, which is not in",
        ),
        ('operation = "shop.tasks:charge"', 'operation = "shop.tasks"', "guard.operation is 'shop.tasks'"),
        (
            'operation = "shop.tasks:charge"',
            'operation = "a:b"\npolicy = "once"',
            "guard.operation says it all",
        ),
        ('operation = "shop.tasks:charge"', 'policy = "maybe"', "guard.policy is 'maybe': one of row,"),
        ('operation = "shop.tasks:charge"', 'policy = "once"\ntable = "t"', "go together"),
        (
            'operation = "shop.tasks:charge"',
            'operation = "a:b"\n[control]\nnone = " "',
            "control.none gives a reason",
        ),
        ("[watch]", "[watch", "replay.toml is no TOML"),
    ],
)
def test_what_is_wrong_names_file_and_field(folder: Path, was: str, now: str, said: str) -> None:
    assert was in WHOLE
    (folder / "replay.toml").write_text(WHOLE.replace(was, now))
    with pytest.raises(ConfigurationError) as caught:
        read_description("replay.toml")
    assert said in str(caught.value)
    assert "replay.toml" in str(caught.value)


def test_everything_that_is_wrong_is_said_at_once(folder: Path) -> None:
    (folder / "replay.toml").write_text(
        WHOLE.replace("rounds = 120", "rounds = 0").replace('"1 min"', '"soon"')
    )
    with pytest.raises(ConfigurationError, match=r"rounds is at least 1; patience is 'soon'"):
        read_description("replay.toml")


def test_a_row_is_counted_by_sql(folder: Path) -> None:
    start, end = WHOLE.index("[count]"), WHOLE.index("[guard]")
    text = WHOLE[:start] + WHOLE[end:].replace('operation = "shop.tasks:charge"', 'policy = "row"')
    (folder / "replay.toml").write_text(text)
    with pytest.raises(ConfigurationError, match="a row is counted where it is committed"):
        read_description("replay.toml")


def test_a_file_of_sqlite_is_found_from_the_description(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "replay.toml").write_text(WHOLE.replace("${REPLAY_DATABASE}", "shop.db"))
    found = read_description("below/replay.toml")
    assert isinstance(found.count, CountSql)
    assert found.count.database == str(folder / "below" / "shop.db")


def test_a_dollar_that_is_meant_stays(folder: Path) -> None:
    (folder / "replay.toml").write_text(WHOLE.replace("buyer-{n}", "$${HOME}-{n}"))
    message = read_description("replay.toml").message
    assert not callable(message)
    assert message["email"] == "${HOME}-{n}@example.test"


PYTHON = """
from semel.replay import CalledFunction, CountHttp, Description, Watch

def describe():
    return Description(
        name="mail",
        deliver=CalledFunction(function="shop:mail"),
        watch=Watch(http="${MAIL_URL}"),
        message=lambda n: {"user": n},
        look_alike=lambda n: {"user": n},
        count=CountHttp(url="http://127.0.0.1:1/sent/{user}"),
    )

class Made(Description):
    pass

made = describe()
number = 7

def fails():
    raise RuntimeError("no settings")

def leaves():
    raise SystemExit(3)
"""


@pytest.mark.parametrize("attribute", ["describe", "made"])
def test_a_description_in_python(folder: Path, monkeypatch: pytest.MonkeyPatch, attribute: str) -> None:
    (folder / "replay_of_mail.py").write_text(PYTHON)
    monkeypatch.setenv("MAIL_URL", "http://mail.test")
    monkeypatch.delitem(sys.modules, "replay_of_mail", raising=False)
    monkeypatch.syspath_prepend(folder)
    found = read_description(f"replay_of_mail:{attribute}")
    assert found.watch.http == "http://mail.test"
    assert isinstance(found.deliver, CalledFunction)
    assert isinstance(found.count, CountHttp)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("replay_of_mail:number", "number of replay_of_mail gives a int"),
        ("replay_of_mail:absent", "absent of replay_of_mail is not there"),
        ("replay_of_mail:describe", "watch.http names ${MAIL_URL}, which is not in the environment"),
        ("no_such_module_here:x", "Importing no_such_module_here failed"),
        ("replay_of_mail:fails", "fails of replay_of_mail failed: RuntimeError: no settings"),
        ("replay_of_mail:leaves", "leaves of replay_of_mail failed: SystemExit: 3"),
        ("replay.toml", "There is no file replay.toml"),
        ("something", "'something' names no description"),
    ],
)
def test_a_name_that_gives_none(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    (folder / "replay_of_mail.py").write_text(PYTHON)
    monkeypatch.delenv("MAIL_URL", raising=False)
    monkeypatch.delitem(sys.modules, "replay_of_mail", raising=False)
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ConfigurationError) as caught:
        read_description(name)
    assert said in str(caught.value)


def test_counts_by_calls_unless_told(folder: Path) -> None:
    start, end = WHOLE.index("[count]"), WHOLE.index("[guard]")
    (folder / "replay.toml").write_text(WHOLE[:start] + WHOLE[end:])
    assert read_description("replay.toml").count == CountCalls()


def test_a_queue_of_sqs_needs_its_worker(folder: Path) -> None:
    start, end = WHOLE.index("[deliver]"), WHOLE.index("[watch]")
    deliver = '[deliver]\nby = "sqs"\nqueue_url = "http://q"\nworker = ["python", "-m", "shop"]\n'
    (folder / "replay.toml").write_text(WHOLE[:start] + deliver + WHOLE[end:])
    assert isinstance(read_description("replay.toml").deliver, SqsQueue)
    (folder / "replay.toml").write_text(
        WHOLE[:start] + deliver.replace('["python", "-m", "shop"]', "[]") + WHOLE[end:]
    )
    with pytest.raises(ConfigurationError, match=r"deliver\.worker"):
        read_description("replay.toml")
