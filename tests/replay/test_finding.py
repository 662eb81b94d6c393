"""Jobs are found by reading code: which way they are delivered, what their message is, which call to watch."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from semel.errors import ConfigurationError
from semel.replay.checking import check
from semel.replay.finding import Candidate, find_functions, find_jobs
from semel.replay.finding.writing import description_of, key_of, short_name
from semel.replay.reading import read_description

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def write(project: Path, **files: str) -> Path:
    for name, text in files.items():
        path = project / name.replace("__", "/").replace("_rb", ".rb")
        path = path if path.suffix else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return project


def found(project: Path) -> dict[str, Candidate]:
    return {each.name: each for each in find_jobs(project)}


CELERY = """
from celery import Celery, shared_task
from shop.provider import Gateway, charge
from shop import mail as post
import stripe

app = Celery("shop")

@app.task(name="shop.charge", queue="charges", acks_late=True)
def charge_order(order_id: int, amount: int = 5):
    load(order_id)
    charge(order_id, amount)

@shared_task(bind=True)
def remind(self, user_id, email):
    gateway = Gateway("x")
    gateway.notify(user_id)

@app.task
def refund(payment_id: str):
    stripe.Refund.create(payment=payment_id)

@app.task
def say(name):
    post.send_hello(name)

@app.task
def unclear(client, n):
    client.charge(n)

def load(order_id): ...
def plain(order_id): ...
raise RuntimeError("this module is read, not run")
"""
PROVIDER = """
import requests

def charge(order_id, amount):
    return _ask("/charges", order_id)

def _ask(path, body):
    return requests.post(path, json=body)

class Gateway:
    def notify(self, user):
        requests.post("/x")
"""


def test_tasks_of_celery(project: Path) -> None:
    write(
        project,
        shop____init__="",
        shop__tasks=CELERY,
        shop__provider=PROVIDER,
        shop__mail="def send_hello(name): ...",
    )
    jobs = found(project)
    assert list(jobs) == [
        "shop.charge",
        "shop.tasks.remind",
        "shop.tasks.refund",
        "shop.tasks.say",
        "shop.tasks.unclear",
    ]
    charge = jobs["shop.charge"]
    assert charge.deliver == {"app": "shop.tasks:app", "task": "shop.charge", "queue": "charges"}
    assert [(each.name, each.kind, each.required) for each in charge.parameters] == [
        ("order_id", "int", True),
        ("amount", "int", False),
    ]
    assert charge.watched[0].call == "shop.provider.charge"
    assert charge.place == "shop/tasks.py:10"
    assert [each.name for each in jobs["shop.tasks.remind"].parameters] == ["user_id", "email"]
    assert jobs["shop.tasks.remind"].watched[0].call == "shop.provider.Gateway.notify"
    assert jobs["shop.tasks.remind"].deliver["app"] == "shop.tasks:app"
    assert jobs["shop.tasks.refund"].watched[0].call == "stripe.Refund.create"
    assert jobs["shop.tasks.say"].watched[0].call == "shop.mail.send_hello"
    assert jobs["shop.tasks.unclear"].watched == ()
    assert "client.charge(…)" in jobs["shop.tasks.unclear"].notes[0]


def test_a_method_of_an_object_that_keeps_its_client(project: Path) -> None:
    write(
        project,
        carrier="""
            import requests

            class Carrier:
                def __init__(self):
                    self.session = requests.Session()

                def buy(self, order):
                    return self._ask(order)

                def _ask(self, order):
                    return self.session.post("/labels", json=order)

            carrier = Carrier()
            """,
        tasks="""
            from celery import Celery
            from carrier import carrier
            app = Celery()

            @app.task(bind=True)
            def label(self, order_no: str):
                return carrier.buy(order_no)
            """,
    )
    (watched,) = found(project)["tasks.label"].watched
    assert watched.call == "carrier.Carrier.buy"
    assert watched.why == "it leads to requests.Session.post"


def test_plain_functions_by_the_end_of_their_names(project: Path) -> None:
    write(project, a="def send(order): ...\ndef resend(order): ...", b="def send(order): ...")
    assert [each.deliver["function"] for each in find_functions(project, "send")] == ["a:send", "b:send"]
    for name in ("a.send", "a:send"):
        assert [each.deliver["function"] for each in find_functions(project, name)] == ["a:send"]
    assert find_jobs(project) == []


def test_an_application_of_its_own_module(project: Path) -> None:
    write(
        project,
        shop____init__="",
        shop__celery="from celery import Celery\napp = Celery('shop')",
        shop__tasks="from .celery import app as celery_app\n@celery_app.task\ndef a(order_id): ...",
    )
    assert found(project)["shop.tasks.a"].deliver["app"] == "shop.celery:app"


def test_two_applications_and_a_shared_task_leave_it_open(project: Path) -> None:
    write(
        project,
        a="from celery import Celery, shared_task\nx = Celery()\ny = Celery()\n@shared_task\ndef t(n): ...",
    )
    assert str(found(project)["a.t"].deliver["app"]).startswith("TODO")


def test_the_shop_of_the_examples() -> None:
    jobs = found(EXAMPLES / "shop")
    guarded = jobs["charge_order_with_key"]
    assert guarded.way == "semel"
    assert guarded.operation == "shop.jobs:charge_order_with_key"
    assert [each.name for each in guarded.parameters] == ["order_id"]
    assert guarded.watched[0].call == "shop.gateway.charge"
    assert jobs["charge_order"].operation is None


SEMEL = """
import semel
app = semel.App()
once = semel.Once(app)

@app.job(kind="charge", context=True, once=once.operation("charge", key="order_id"))
def charge_order(context, op, tenant: str, order_id: int): ...

@app.job(relayed=True)
def elsewhere(order_id: int): ...

@once.operation("ship", key="parcel", with_operation=False)
def ship(parcel: str): ...

@app.job
def outer(parcel: str):
    ship(parcel)
"""


def test_jobs_of_semel_and_guarded_functions(project: Path) -> None:
    jobs = found(write(project, shop=SEMEL))
    assert list(jobs) == ["charge", "ship", "outer"]
    assert jobs["charge"].deliver == {"app": "shop:app", "kind": "charge"}
    assert [each.name for each in jobs["charge"].parameters] == ["tenant", "order_id"]
    assert (jobs["charge"].operation, jobs["charge"].key) == ("shop:charge_order", "order_id")
    key = key_of(jobs["charge"])
    assert key is not None
    assert key.name == "order_id"
    assert (jobs["ship"].way, jobs["ship"].deliver) == ("callable", {"function": "shop:ship"})
    assert [each.name for each in jobs["ship"].parameters] == ["parcel"]
    assert jobs["outer"].operation == "shop:ship"


SQS = """
import json, os
import boto3
from mailer import send_mail

QUEUE = os.environ["MAIL_QUEUE"]
sqs = boto3.client("sqs")

def consume():
    while True:
        answer = sqs.receive_message(QueueUrl=QUEUE, WaitTimeSeconds=20)
        for message in answer.get("Messages", []):
            handle(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=QUEUE, ReceiptHandle=message["ReceiptHandle"])

def handle(body):
    send_mail(body["user_id"], body.get("template"))

if __name__ == "__main__":
    consume()
"""
CONSUMER = """
import semel
from semel.adapters.sqs import Consumer
once = semel.Once("shop.db")

@once.operation("charge", key="order_id")
def charge(op, order_id: int): ...

consumer = Consumer("https://sqs.test/1/orders", charge)
"""


def test_loops_that_receive_and_consumers(project: Path) -> None:
    write(
        project,
        loop=SQS,
        mailer="import smtplib\ndef send_mail(u, t):\n  smtplib.SMTP('x').sendmail(u, t)",
        shop=CONSUMER,
    )
    jobs = found(project)
    assert list(jobs) == ["charge", "consume"]
    loop = jobs["consume"]
    assert loop.deliver == {"queue_url": "${MAIL_QUEUE}", "worker": ["python", "-m", "loop"]}
    assert [each.name for each in loop.parameters] == ["user_id", "template"]
    assert jobs["charge"].deliver == {
        "queue_url": "https://sqs.test/1/orders",
        "worker": ["semel", "sqs", "worker", "shop:consumer"],
    }
    assert jobs["charge"].operation == "shop:charge"
    assert loop.watched[0].call == "mailer.send_mail"


RUBY = """
# class Not
#   include Sidekiq::Job
# end
module Billing
  class Error < StandardError; end

  class ChargeJob < ApplicationJob
    include Sidekiq::Job
    sidekiq_options retry: 5, queue: :critical

    def self.enqueue(order) = perform_async(order.id)

    def perform(order_id, amount = default(1, 2), *rest)
      order = Order.find(order_id)
      Stripe::Charge.create({ amount: amount })
      Ledger.new(order).post!(amount)
    end

    def other
      Mailer.deliver(1)
    end
  end
end

class Plain
  def perform(x); end
end

class Mail::HelloWorker
  include ::Sidekiq::Worker
  def perform user_id, name
    Mailer.deliver_hello(user_id, name)
  end
end
__END__
class Late
  include Sidekiq::Job
end
"""


def test_classes_of_sidekiq(project: Path) -> None:
    write(project, jobs_rb=RUBY)
    (project / "Gemfile").write_text("gem 'sidekiq'")
    (project / "app.rb").write_text("require_relative 'jobs'")
    jobs = found(project)
    assert list(jobs) == ["Billing::ChargeJob", "Mail::HelloWorker"]
    charge = jobs["Billing::ChargeJob"]
    assert charge.deliver == {
        "job_class": "Billing::ChargeJob",
        "worker": ["bundle", "exec", "sidekiq", "-r", "./app.rb"],
        "queue": "critical",
    }
    assert [(each.name, each.required) for each in charge.parameters] == [
        ("order_id", True),
        ("amount", False),
    ]
    assert [each.call for each in charge.watched] == ["Stripe::Charge.create", "Ledger#post!"]
    hello = jobs["Mail::HelloWorker"]
    assert [each.name for each in hello.parameters] == ["user_id", "name"]
    assert [each.call for each in hello.watched] == ["Mailer.deliver_hello"]


def test_code_that_cannot_be_read_is_left_out(project: Path) -> None:
    write(project, good=SEMEL, bad="def (:", nul="a = '\0'")
    (project / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nname = '\xe4'\n")
    (project / "worse.py").write_bytes(b"\xff\xfe\x00")
    (project / "node_modules").mkdir()
    shutil.copy(project / "good.py", project / "node_modules" / "more.py")
    (project / "loop").symlink_to(project)
    assert list(found(project)) == ["charge", "ship", "outer"]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("shop.tasks.charge_order", "charge-order"),
        ("Billing::ChargeHTTPJob", "charge-httpjob"),
        ("Billing::ChargeJob", "charge-job"),
        ("charge", "charge"),
        ("é", "job"),
    ],
)
def test_names_of_files(name: str, short: str) -> None:
    assert short_name(Candidate(name=name, way="celery", place="", deliver={})) == short


def test_what_is_written_can_be_read(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job's description is a whole one, or names what is to be filled in."""
    write(project, shop=SEMEL, loop=SQS, mailer="def send_mail(u, t): ...", jobs_rb=RUBY)
    write(
        project,
        pack____init__="",
        pack__tasks=CELERY.replace("shop.", "pack."),
        pack__provider=PROVIDER,
        pack__mail="",
    )
    monkeypatch.setenv("MAIL_QUEUE", "https://sqs.test/1/mail")
    file, whole, marked = tmp_path / "replay.toml", [], []
    for each in find_jobs(project):
        file.write_text(description_of(each))
        try:
            whole.append(read_description(file).name)
        except ConfigurationError as error:
            marked.append((each.name, str(error)))
    assert whole == ["consume", "charge", "remind", "refund", "say", "charge-job", "hello-worker"]
    assert [name for name, _ in marked] == ["pack.tasks.unclear", "charge", "ship", "outer"]
    assert {"is still to be filled in (TODO: the call that has the effect" in said for _, said in marked} == {
        True
    }


def test_what_was_marked_is_refused_until_it_is_filled_in(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "replay.toml"
    (job,) = find_jobs(
        write(project, a="from celery import Celery\napp = Celery()\n@app.task\ndef t(order_id): ...")
    )
    file.write_text(description_of(job))
    with pytest.raises(
        ConfigurationError, match=r"watch\.call is still to be filled in \(TODO: the call that has"
    ):
        read_description(file)
    filled = [
        'call = "a.b"' if line.startswith('call = "TODO') else line for line in file.read_text().splitlines()
    ]
    file.write_text("\n".join(filled))
    assert check(read_description(file), "replay.toml").message == {"order_id": "{n}"}
