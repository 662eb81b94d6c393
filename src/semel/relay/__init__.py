"""The outbox: jobs that are stored in your transaction, and done where another broker's workers are."""

from semel.relay.figures import Figures
from semel.relay.message import Message
from semel.relay.relay import Relay, Running
from semel.relay.route import Route
from semel.relay.target import Sender, Target
from semel.relay.targets.celery import ToCelery
from semel.relay.targets.kafka import ToKafka
from semel.relay.targets.nats import ToNATS
from semel.relay.targets.rabbitmq import ToRabbitMQ
from semel.relay.targets.sidekiq import ToSidekiq
from semel.relay.targets.sqs import ToSQS

__all__ = [
    "Figures",
    "Message",
    "Relay",
    "Route",
    "Running",
    "Sender",
    "Target",
    "ToCelery",
    "ToKafka",
    "ToNATS",
    "ToRabbitMQ",
    "ToSQS",
    "ToSidekiq",
]
