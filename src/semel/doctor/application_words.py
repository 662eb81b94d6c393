"""What each finding about an application of the semel queue means, by its code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from semel.doctor.finding import Severity
from semel.doctor.words import Words

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
WORDS: Final[Mapping[str, Words]] = MappingProxyType(
    {
        "app-not-guarded": Words(
            _NOTE,
            "A job that is not guarded acts again whenever its worker died on the way, or somebody enqueues it twice.",
            "@app.job(once=…) for those whose effect must not happen twice; transaction=True where it is rows only.",
        ),
        "app-lease-short": Words(
            _WARNING,
            "A pause of that length (a swapped machine, a stalled network) makes a live job look dead.",
            "Keep the lease at 10 s or more; 60 s is the default.",
        ),
        "app-no-timeout": Words(
            _WARNING,
            "Nothing ends a run that hangs: its lease is extended up to longest_run, and then it is taken for dead while it "
            "may still act.",
            "Give it a timeout= that its longest run stays under.",
        ),
        "app-retention-retries": Words(
            _ERROR,
            "A retry comes when the record is deleted: the operation acts again.",
            "Raise keep_operations (and keep=) over the retries' whole time, or lower max_attempts.",
        ),
        "app-retention-failed": Words(
            _ERROR,
            "A person retries a failed job whose record is deleted: the operation acts again.",
            "Keep records (keep_operations) longer than failed jobs (keep_failed) and their retries.",
        ),
        "app-provider-window": Words(
            _WARNING,
            "The window is over before a second attempt could be sure: a stale claim is never sent again, and goes to then=.",
            "Give valid_for= as the provider says, and a longest_run well below it.",
        ),
        "app-provider-retries": Words(
            _NOTE,
            "The retries go on after the provider forgets the key: what is uncertain then goes to then=.",
            "Nothing, where somebody looks at held operations; else then=Lookup(…).",
        ),
        "app-settle-short": Words(
            _WARNING,
            'A "not done" is believed before the outside system can have settled: what is still under way is done again.',
            "settle= at least the time-out of the outside call and the lag of the search.",
        ),
        "app-delivery-key": Words(
            _NOTE,
            "A key of that name is usually new for each delivery or attempt: then nothing is ever a repeat.",
            "Make the key of what names the business operation.",
        ),
        "app-personal-key": Words(
            _NOTE,
            (
                "The label of each record, and its key's text, show personal data; a plain hash of a "
                "phone number can be guessed."
            ),
            "Once(…, secret=semel.Secret(…)) makes keys HMACs and stores no label.",
        ),
        "app-from-start": Words(
            _NOTE,
            "Every exception counts as after the effect: a plain bug becomes an uncertain operation.",
            'acting="explicit", and with op.acting(): around the outside call.',
        ),
        "app-measured-run": Words(
            _ERROR,
            "Runs took longer than the lease is kept for: a live run was, or can be, taken for dead.",
            "Raise longest_run= (and the lease, where nobody extends it) over the longest run.",
        ),
        "app-measured-stop": Words(
            _NOTE,
            "A deploy kills a run of that length; inside its outside call that is uncertain, and gets its policy.",
            "Raise stop_grace over the longest run, and the platform's own grace over that.",
        ),
    }
)
