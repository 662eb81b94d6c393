"""What a person does to jobs; each act is stored with who and why."""

from semel.operate.acts import Acted, cancel, delete, explain_missing, retry
from semel.operate.carry_out import carry_out, carry_out_async
from semel.operate.many import ManyActed, purge, retry_many

__all__ = [
    "Acted",
    "ManyActed",
    "cancel",
    "carry_out",
    "carry_out_async",
    "delete",
    "explain_missing",
    "purge",
    "retry",
    "retry_many",
]
