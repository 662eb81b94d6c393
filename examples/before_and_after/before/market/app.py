"""The Celery application. Late acknowledgement, so that no payout is lost when a worker dies."""

import os

from celery import Celery

app = Celery("market", broker=os.environ["REDIS_URL"], include=["market.payouts"])
app.conf.task_acks_late = True
app.conf.task_reject_on_worker_lost = True
app.conf.worker_prefetch_multiplier = 1
app.conf.broker_transport_options = {"visibility_timeout": 600}
