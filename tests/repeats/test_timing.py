"""What the timing suggests: equal gaps only where they are equal, deploys only where repeats come at them, bursts, chance."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from random import Random

import pytest

from semel.core.past import Bucket, Counts, GapGroup, Past
from semel.repeats.bursts import find_bursts
from semel.repeats.chance import binomial_tail, poisson_tail
from semel.repeats.deploys import AtDeploys, at_deploys
from semel.repeats.gaps import DAY, HOUR, MINUTE, SECOND, find_peaks, histogram, say_duration
from semel.repeats.suggestions import suggest

STEP = MINUTE
BEGIN = 29_454_480 * MINUTE  # 2026-01-01


def grouped(gaps: list[float]) -> list[GapGroup]:
    """As the databases group them."""
    groups: dict[int, list[int]] = {}
    limits = ((1_000, 1), (10_000, 10), (100_000, 100), (1_000_000, 1_000), (10_000_000, 10_000), (DAY, MINUTE),
              (10 * DAY, 10 * MINUTE), (100 * DAY, HOUR), (math.inf, DAY))  # fmt: skip
    for gap in map(round, gaps):
        step = next(step for limit, step in limits if gap < limit)
        groups.setdefault(gap - gap % step, []).append(gap)
    return [GapGroup(low, len(g), min(g), max(g), sum(g)) for low, g in sorted(groups.items())]


def past_of(gaps: list[float], buckets: list[Bucket] | None = None) -> Past:
    nothing = Counts(0, 0, 0, 0, 0, 0, 0, None, None)
    return Past(nothing, (), tuple(grouped(gaps)), tuple(buckets or ()), STEP)


def kinds(gaps: list[float]) -> list[str]:
    return [suggestion.kind for suggestion in suggest(past_of(gaps), None)]


# -- gaps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "late", "about"),
    [
        (360 * SECOND, 5 * SECOND, 360 * SECOND),
        (30 * SECOND, 400, 30 * SECOND),
        (30 * MINUTE, 20 * SECOND, 30 * MINUTE),
        (HOUR, 40 * SECOND, HOUR),
        (5 * SECOND, 100, 5 * SECOND),
        (12 * HOUR, 5 * MINUTE, 12 * HOUR),
        (97 * SECOND, 800, 97 * SECOND),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_equal_gaps_are_a_time_out_of_that_length(seed: int, timeout: int, late: int, about: int) -> None:
    """Gaps of a time-out and what a worker takes to come round, among as many others that are spread."""
    random = Random(seed)
    gaps = [timeout + random.uniform(0, late) for _ in range(40)]
    gaps += [math.exp(random.uniform(math.log(100), math.log(10 * DAY))) for _ in range(40)]
    (found, *_) = suggest(past_of(gaps), None)
    assert found.kind == "time-out"
    assert abs(found.figures["about_seconds"] * SECOND - about) <= 0.015 * about
    assert 0.5 <= found.figures["share"] < 0.62
    assert f"about {say_duration(found.figures['about_seconds'] * SECOND)}" in found.seen


def test_a_time_out_is_named_as_a_person_set_it() -> None:
    (found,) = suggest(past_of([360_000 + late for late in (0, 900, 1_500, 2_200, 3_100, 4_000)]), None)
    assert found.seen == "6 gaps (100%) about 360 s apart"
    assert "a time-out of 360 s" in found.means


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    "spread",
    [
        lambda random: random.uniform(300, 420) * SECOND,
        lambda random: random.gauss(360, 30) * SECOND,
        lambda random: math.exp(random.uniform(math.log(2_000), math.log(2 * DAY))),
        lambda random: random.uniform(1, 59) * SECOND,
        lambda random: random.expovariate(1 / (10 * MINUTE)) + 1,
        lambda random: random.uniform(0, 30 * DAY),
    ],
)
@pytest.mark.parametrize("count", [8, 60, 2_000])
def test_a_broad_spread_is_no_time_out(seed: int, spread: object, count: int) -> None:
    assert callable(spread)
    random = Random(seed)
    assert find_peaks(grouped([spread(random) for _ in range(count)])) == []


def test_two_time_outs_are_told_apart() -> None:
    random = Random(1)
    gaps = [30_000 + random.uniform(0, 300) for _ in range(50)] + [
        3_600_000 + random.uniform(0, 9_000) for _ in range(30)
    ]
    peaks = find_peaks(grouped(gaps))
    assert [(peak.about_ms, peak.gaps) for peak in peaks] == [(30 * SECOND, 50), (HOUR, 30)]


def test_short_gaps_are_a_retry_and_long_ones_enqueued_again() -> None:
    random = Random(2)
    assert kinds([random.uniform(0, 900) for _ in range(30)]) == ["retry"]
    assert kinds([random.uniform(2 * HOUR, 60 * HOUR) for _ in range(30)]) == ["enqueued-again"]
    assert kinds([random.uniform(2 * MINUTE, 50 * MINUTE) for _ in range(30)]) == ["unclear"]
    assert kinds([DAY + random.uniform(0, 5 * MINUTE) for _ in range(30)]) == ["schedule"]
    assert kinds([0, 0, 0]) == ["retry"]
    assert kinds([]) == []


def test_few_equal_gaps_are_no_time_out() -> None:
    assert kinds([360_000, 360_100, 360_200, 360_300]) == ["unclear"]


def test_equal_gaps_are_a_time_out_from_a_twentieth_of_all_gaps_on() -> None:
    """Among thousands some are equal somewhere, and nobody has to look for what so few have in common."""
    equal, others = [3_600_000.0] * 10, [50.0] * 190
    assert [peak.about_ms for peak in find_peaks(grouped([*equal, *others]))] == [HOUR]
    assert find_peaks(grouped([*equal, *others, 50.0])) == []


def test_every_gap_is_in_one_bar() -> None:
    random = Random(3)
    gaps = [round(math.exp(random.uniform(0, math.log(900 * DAY)))) for _ in range(2_000)] + [
        0,
        1,
        99,
        100,
        999,
        1_000,
    ]
    bars = histogram(grouped([float(gap) for gap in gaps]))
    assert sum(bar.gaps for bar in bars) == len(gaps)
    for bar in bars:
        assert bar.gaps == sum(bar.from_ms <= gap < (bar.to_ms or math.inf) for gap in gaps)


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(0, "0 ms"), (250, "250 ms"), (1_500, "1.5 s"), (360_000, "360 s"), (1_800_000, "30 min"), (4 * HOUR, "4 h"),
     (2 * DAY, "2 days"), (3_600_000, "60 min")],
)  # fmt: skip
def test_durations_are_said(milliseconds: int, said: str) -> None:
    assert say_duration(milliseconds) == said


# -- deploys --------------------------------------------------------------------------------------------------------


def history(random: Random, days: int = 30, office_hours: bool = True) -> list[int]:
    """Deliveries of some days by the minute, most of them in office hours; as moments."""
    moments = []
    for _ in range(days * 150):
        day, hour = (
            random.randrange(days),
            random.randrange(8, 18) if office_hours and random.random() < 0.8 else None,
        )
        minute = random.randrange(24 * 60) if hour is None else hour * 60 + random.randrange(60)
        moments.append(BEGIN + day * DAY + minute * MINUTE)
    return sorted(moments)


def buckets_of(moments: list[int], repeats: list[int]) -> list[Bucket]:
    """With as many deliveries as there are, and repeats on top of them."""
    activity = Counter(moment - moment % STEP for moment in moments + repeats)
    again = Counter(moment - moment % STEP for moment in repeats)
    return [Bucket(start, count, again[start], again[start]) for start, count in sorted(activity.items())]


def deploys_of(random: Random, count: int, days: int = 30) -> list[int]:
    return [
        BEGIN + random.randrange(days) * DAY + random.randrange(8 * 60, 18 * 60) * MINUTE
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_repeats_at_deploys_are_found(seed: int) -> None:
    random = Random(seed)
    deploys = deploys_of(random, 12)
    moments = history(random)
    repeats = [deploy + random.randrange(8) * MINUTE for deploy in deploys for _ in range(3)]
    repeats += random.sample(moments, 20)
    found = at_deploys(buckets_of(moments, repeats), STEP, deploys, 10 * MINUTE)
    assert found.holds
    assert found.at_deploys >= 36
    assert found.by_chance < 8
    assert (found.deploys, found.inside) == (12, 12)


def test_the_expectation_follows_the_activity_and_not_the_clock() -> None:
    """All the work is done in the one hour of the day in which deploys are made too: repeats follow it, and not them."""
    random = Random(5)
    moments = [
        BEGIN + day * DAY + 9 * HOUR + random.randrange(60) * MINUTE for day in range(30) for _ in range(60)
    ]
    repeats = random.sample(moments, 90)
    deploys = [BEGIN + day * DAY + 9 * HOUR + 20 * MINUTE for day in range(30)]
    found = at_deploys(buckets_of(moments, repeats), STEP, deploys, 10 * MINUTE)
    assert found.activity_share == pytest.approx(1 / 6, abs=0.04)
    assert found.by_chance == pytest.approx(15, abs=4)
    assert not found.holds


@pytest.mark.parametrize("shape", ["even", "crowds", "one crowd", "few"])
def test_deploys_at_random_are_hardly_ever_a_reason(shape: str) -> None:
    """Over many seeds the label is wrong no more often than its p-value says; also where repeats come in crowds."""
    wrong = 0
    for seed in range(300):
        random = Random(seed)
        moments = history(random)
        if shape == "even":
            repeats = random.sample(moments, 150)
        elif shape == "few":
            repeats = random.sample(moments, 8)
        else:
            crowds = random.sample(moments, 1 if shape == "one crowd" else 12)
            repeats = [crowd + random.randrange(6) * MINUTE for crowd in crowds for _ in range(15)]
        found = at_deploys(buckets_of(moments, repeats), STEP, deploys_of(random, 15), 10 * MINUTE)
        wrong += found.holds
    assert wrong <= 8  # 3 expected at most; 9 or more of 300 at 1% are a chance of 0.4%


def test_without_the_second_reckoning_crowds_would_be_taken_for_deploys() -> None:
    wrong = 0
    for seed in range(100):
        random = Random(seed)
        moments = history(random)
        repeats = [
            crowd + random.randrange(6) * MINUTE for crowd in random.sample(moments, 12) for _ in range(15)
        ]
        found = at_deploys(buckets_of(moments, repeats), STEP, deploys_of(random, 15), 10 * MINUTE)
        wrong += found.p_value < 0.01 and found.at_deploys > found.by_chance
    assert wrong >= 5  # 1 expected, if p were what it says


def test_deploys_everywhere_or_nowhere_are_no_reason() -> None:
    random = Random(7)
    moments = history(random)
    buckets = buckets_of(moments, random.sample(moments, 100))
    everywhere = at_deploys(buckets, STEP, [BEGIN + n * 5 * MINUTE for n in range(30 * 288)], 10 * MINUTE)
    assert (everywhere.holds, everywhere.at_deploys) == (False, 100)
    assert everywhere.by_chance == pytest.approx(100, rel=0.001)
    assert everywhere.p_value > 0.9
    for deploys in ([], [BEGIN - 90 * DAY], [BEGIN + 90 * DAY]):
        nowhere = at_deploys(buckets, STEP, deploys, 10 * MINUTE)
        assert (nowhere.holds, nowhere.at_deploys, nowhere.inside, nowhere.p_value) == (False, 0, 0, 1)
    empty = at_deploys([], STEP, [BEGIN], 10 * MINUTE)
    assert not empty.holds


def test_windows_that_overlap_count_once() -> None:
    buckets = [Bucket(BEGIN + n * MINUTE, 10, 1, 1) for n in range(100)]
    found = at_deploys(
        buckets, STEP, [BEGIN + 20 * MINUTE, BEGIN + 23 * MINUTE, BEGIN + 23 * MINUTE + 59_000], 10 * MINUTE
    )
    assert found.at_deploys == 13
    assert found.activity_share == pytest.approx(0.13)


# -- bursts ---------------------------------------------------------------------------------------------------------


def test_a_burst_is_found_where_it_is_and_only_there() -> None:
    random = Random(8)
    moments = history(random)
    at = BEGIN + 12 * DAY + 14 * HOUR
    repeats = random.sample(moments, 60) + [at + random.randrange(4) * MINUTE for _ in range(40)]
    (burst,) = find_bursts(buckets_of(moments, repeats), STEP)
    assert at - 5 * MINUTE <= burst.from_ms <= at
    assert at + 3 * MINUTE <= burst.to_ms <= at + 10 * MINUTE
    assert 40 <= burst.references <= 45


def test_repeats_that_follow_the_activity_are_no_burst() -> None:
    for seed in range(50):
        random = Random(seed)
        moments = history(random)
        assert find_bursts(buckets_of(moments, random.sample(moments, 300)), STEP) == []
    busy = [
        Bucket(BEGIN + n * MINUTE, 1_000 if n == 50 else 10, 100 if n == 50 else 1, 1) for n in range(100)
    ]
    assert find_bursts(busy, STEP) == []


def test_one_reference_that_comes_over_and_over_is_no_burst() -> None:
    buckets = [Bucket(BEGIN + n * MINUTE, 50, 40 if n == 9 else 0, 1 if n == 9 else 0) for n in range(200)]
    assert find_bursts(buckets, STEP) == []


# -- chance ---------------------------------------------------------------------------------------------------------


def exact(successes: int, trials: int, probability: Fraction) -> Fraction:
    return sum(
        (
            math.comb(trials, n) * probability**n * (1 - probability) ** (trials - n)
            for n in range(successes, trials + 1)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("trials", [1, 2, 10, 57, 200])
@pytest.mark.parametrize("probability", [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
def test_the_binomial_tail_is_exact(trials: int, probability: Fraction) -> None:
    for successes in range(trials + 2):
        known = float(exact(successes, trials, probability))
        assert binomial_tail(successes, trials, float(probability)) == pytest.approx(
            known, rel=1e-9, abs=1e-12
        )


def test_the_tails_at_their_ends() -> None:
    assert binomial_tail(0, 0, 0.5) == 1
    assert binomial_tail(1, 10, 0.0) == 0
    assert binomial_tail(3, 3, 1.0) == 1
    assert binomial_tail(4, 3, 0.5) == 0
    assert 0 < binomial_tail(3_000, 1_000_000, 0.002) < 1e-80
    assert poisson_tail(3, 1.0) == pytest.approx(1 - math.exp(-1) * (1 + 1 + 0.5))
    assert poisson_tail(5, 5) == 1
    assert poisson_tail(1, 0.0) == 0


@pytest.mark.parametrize(
    ("found", "p_value", "p_shifted", "holds"),
    [(50, 1e-9, 1e-3, True), (50, 0.2, 1e-3, False), (50, 1e-9, 0.2, False), (1, 1e-9, 1e-3, False)],
    ids=["both", "by the single repeats not", "by the moved deploys not", "too few"],
)
def test_the_label_needs_both_reckonings(found: int, p_value: float, p_shifted: float, holds: bool) -> None:
    told = AtDeploys(
        deploys=9,
        inside=9,
        window_ms=60_000,
        repeats=100,
        at_deploys=found,
        by_chance=0.5,
        activity_share=0.005,
        p_value=p_value,
        p_shifted=p_shifted,
    )
    assert told.holds is holds
