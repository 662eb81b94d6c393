"""A shop's consumer of an SQS queue, as it runs under replay. Nothing here knows of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import boto3

EFFECTS = Path(os.environ["EFFECTS"])


def main() -> None:
    client = boto3.client("sqs")
    while True:
        told = client.receive_message(
            QueueUrl=os.environ["QUEUE"], WaitTimeSeconds=10, MessageAttributeNames=["All"]
        )
        for message in told.get("Messages") or ():
            order = json.loads(message["Body"])["order"]
            kind = message.get("MessageAttributes", {}).get("kind", {}).get("StringValue", "")
            with EFFECTS.open("a") as effects:
                effects.write(f"{order} {os.getpid()} {message['MessageId']} {kind}\n")
            while Path(f"{EFFECTS}.hold").exists():
                time.sleep(0.01)
            client.delete_message(QueueUrl=os.environ["QUEUE"], ReceiptHandle=message["ReceiptHandle"])


if __name__ == "__main__":
    main()
