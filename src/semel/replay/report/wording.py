"""What a check expected and what was seen, in the same few words in every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from semel.replay.results import CheckResult, Evidence, Expected, Run, Verdict

NONE: Final = "–"
SIGNS: Final[Mapping[Verdict, str]] = MappingProxyType(
    {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.VACUOUS: "○", Verdict.SKIPPED: "–"}
)


def expected_words(expected: Expected | None) -> str:
    """How many effects each operation may have: "exactly 1", "none", "1 to 2"."""
    if expected is None:
        return NONE
    if expected.least == expected.most:
        return f"exactly {expected.most}" if expected.most else "none"
    if expected.least == 0:
        return f"at most {expected.most}"
    return f"{expected.least} to {expected.most}"


def counted_words(evidence: Evidence) -> str:
    """How many effects the operations had: "1", "1 in each of 100", "1 (97 of 100), 2 (3 of 100)"; and the maybes."""
    counts = Counter(evidence.effects)
    total = len(evidence.effects)
    match len(counts):
        case 0:
            words = NONE
        case 1:
            words = str(evidence.effects[0]) + (f" in each of {total}" if total > 1 else "")
        case _:
            words = ", ".join(
                f"{effects} ({number} of {total})" for effects, number in sorted(counts.items())
            )
    return words + (f", {evidence.maybes} maybe" if evidence.maybes else "")


def record_words(evidence: Evidence) -> str:
    """The operations' records: "completed acted", "97 completed acted, 3 held"."""
    states = Counter(record.state for record in evidence.records)
    several = sum(record.count > 1 for record in evidence.records)
    if not states:
        return NONE
    if len(states) == 1 and len(evidence.records) == 1:
        words = next(iter(states))
    else:
        words = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    return words + (f" ({several} with more than one record)" if several else "")


def records_counted(evidence: Evidence) -> str:
    """How many records each operation has."""
    numbers = Counter(record.count for record in evidence.records)
    if not numbers:
        return NONE
    if len(numbers) == 1:
        return str(next(iter(numbers)))
    return ", ".join(f"{count} ({times} times)" for count, times in sorted(numbers.items()))


def lease_words(evidence: Evidence) -> str:
    """The oldest claim beside its lease: "65 s old, lease 60 s"; with a remark where replay did not wait for its end."""
    known = [record for record in evidence.records if record.claim_age is not None]
    if not known:
        return NONE
    oldest = max(known, key=lambda record: record.claim_age or 0)
    age = f"{seconds(oldest.claim_age or 0)} old"
    lease = f", lease {seconds(oldest.lease)}" if oldest.lease is not None else ""
    return age + lease + (" (ended by replay)" if evidence.lease_ended else "")


def seconds(value: float) -> str:
    """A duration with no more digits than it deserves."""
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.1f}".removesuffix(".0") + " s" if value >= 1 else f"{value * 1000:.0f} ms"


def verdict_word(verdict: Verdict) -> str:
    """The verdict with its sign, which does not depend on colour."""
    return f"{SIGNS[verdict]} {verdict.value}"


def shows_trouble(check: CheckResult) -> bool:
    """Whether it is one that the run does not hold for."""
    return check.verdict in (Verdict.FAILS, Verdict.VACUOUS)


def outcome(run: Run) -> str:
    """The whole run in one sentence."""
    *before, after = run.runs
    judged = [check for check in after.checks if check.verdict is not Verdict.SKIPPED]
    bad = [check for check in judged if shows_trouble(check)]
    of = f" of the code {after.label}" if after.label else ""
    if not judged:
        return "Nothing was shown: no check applies."
    if bad:
        fails = sum(check.verdict is Verdict.FAILS for check in bad)
        parts = [f"{fails} fail{'s' if fails == 1 else ''}"] if fails else []
        parts += [f"{len(bad) - fails} vacuous"] if len(bad) > fails else []
        return f"Does not hold: of {_checks(len(judged))}{of}, {' and '.join(parts)}."
    if not run.holds:
        mild = [each.label for each in before if not _failed(each.checks)]
        return f"Nothing was shown: all hold{of}, but the code {' and '.join(mild)} failed none either."
    seen = f"; the code {' and '.join(each.label for each in before)} failed" if before else ""
    return f"Holds: {_checks(len(judged))}{of}, all as expected{seen}."


def _failed(checks: tuple[CheckResult, ...]) -> bool:
    return any(check.verdict is Verdict.FAILS for check in checks)


def _checks(number: int) -> str:
    return f"{number} check{'' if number == 1 else 's'}"
