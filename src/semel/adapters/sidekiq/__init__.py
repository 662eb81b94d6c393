"""Sidekiq's side in Python: sends the messages again that the gem kept. The guard itself is the gem's, in ``ruby/``."""

from semel.adapters.sidekiq.resender import SidekiqResender

__all__ = ["SidekiqResender"]
