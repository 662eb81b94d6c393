"""Amazon SQS: a consumer, a handler for your own receive loop, and one for Lambda; over plain boto3."""

from semel.adapters.sqs.client import SqsClient
from semel.adapters.sqs.consumer import Consumer
from semel.adapters.sqs.endings import Ending, Fate
from semel.adapters.sqs.envelopes import Unwrap, eventbridge, s3, sns
from semel.adapters.sqs.lambdas import (
    BatchResponse,
    ItemFailure,
    LambdaContext,
    LambdaHandler,
    lambda_handler,
)
from semel.adapters.sqs.loops import Delivery, Inbox
from semel.adapters.sqs.message import Message
from semel.adapters.sqs.resending import SqsResender
from semel.adapters.sqs.settings import QueueSettings
from semel.adapters.sqs.ways import SqsWay

__all__ = [
    "BatchResponse",
    "Consumer",
    "Delivery",
    "Ending",
    "Fate",
    "Inbox",
    "ItemFailure",
    "LambdaContext",
    "LambdaHandler",
    "Message",
    "QueueSettings",
    "SqsClient",
    "SqsResender",
    "SqsWay",
    "Unwrap",
    "eventbridge",
    "lambda_handler",
    "s3",
    "sns",
]
