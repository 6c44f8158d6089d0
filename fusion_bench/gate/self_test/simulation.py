"""Simulated runs of the gate with a known truth: one check, halves of the queries, new repeats.

A number that is compared with the function that printed it cannot be wrong. Here the printed
chances come from one half, and the gate's decisions on samples from the other half say how often
it really happened: the mean over many halvings must agree within its error.

Where the gated system has several repeats, new ones are drawn. Groups of queries (single queries,
without groups) are drawn with replacement, the same for both sides. Each new repeat takes the
answers to each group from one of the observed repeats, drawn independently. So repeats differ on
single groups as they were seen to. Then each new repeat is moved on all queries by a normal number
whose variance is the estimated σ²_τ. Both sides have the same true mean. Source: the bootstrap of
crossed random effects of Owen 2007, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2).
It draws whole repeats; three are too few for that, so their effect is parametric here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fusion_bench.config.json_records import StoredRecord
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.gate import estimates
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.verdict import ACCEPTED, ALARMS, ALPHA, CheckStatus, decide_status
from fusion_bench.stats import intervals
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.repeat_variance import add_repeat_variance, measure_repeat_spread

#: Resamples of the randomization test in each run; its level is exact for any number.
RESAMPLES = 2_000
#: Runs that share their signs.
RUNS_PER_BLOCK = 100


def simulated_p_values(sums: FloatArray, seed: int) -> FloatArray:
    """(runs,): p of each run by the gate's test; a group is one unit.

    Blocks of runs have different random signs: the same 2,000 signs for all runs would shift the
    level of the test in all of them alike.
    """
    parts = np.array_split(sums, max(len(sums) // RUNS_PER_BLOCK, 1))
    return np.concatenate(
        [
            randomization_p_values(
                part, resamples=RESAMPLES, seed=seed + 1000 * i, alternative="less"
            )
            for i, part in enumerate(parts)
        ]
    )


def decide_runs(
    sums: FloatArray, sizes: FloatArray, p_holm: FloatArray, max_drop: float
) -> list[CheckStatus]:
    """The status of a check in every run; ``fell`` stands for both alarms."""
    freedom = intervals.bell_mccaffrey_freedom(sizes[0].astype(np.int64))
    quantile = intervals.t_quantile(freedom, 1 - ALPHA)
    statuses: list[CheckStatus] = []
    for row, size, p in zip(sums, sizes, p_holm.tolist(), strict=True):
        queries, mean_size = size.sum(), size.mean()
        mean = float(row.sum() / queries)
        residuals = row - mean * size
        error = float(intervals.cr2_standard_error(residuals, size.astype(np.int64)))
        reach = float(size.max() / mean_size)
        returns = intervals.log_returns(row / mean_size, reach, -max_drop).sum(axis=0)
        has_capital = float(intervals.log_capital(returns)) >= -np.log(ALPHA)
        status = decide_status(
            changed=int(np.count_nonzero(row)),
            mean=mean,
            max_drop=max_drop,
            t_bound=mean - quantile * error,
            betting_bound=mean if has_capital else -np.inf,
            p_fell=p,
            p_regressed=1.0,
        )
        statuses.append(status)
    return statuses


HALVINGS = 100
#: Samples from the second half, of each kind and in each halving.
SAMPLES = 8
#: At most so many groups of a check take part, and at least so many must.
MOST_GROUPS, LEAST_GROUPS = 240, 60
#: Agreement: within so many standard errors of the mean over the halvings.
ERRORS = 3.0
#: The power at which a drop counts as detectable.
POWER = 0.8


class HalvesOutcome(StoredRecord):
    """One printed chance of one check.

    Attributes:
        check: The check.
        quantity: ``power at the detectable drop``, ``alarm``, ``pass`` (of either kind, without a
            true difference) or ``false pass`` (at a true drop of m).
        printed: The mean that the first halves print; the power is 0.8 by definition.
        measured: The mean over samples from the second halves.
        standard_error: Of the difference; halvings share queries, so it is taken from the number
            of halvings, not of samples.
        agrees: Whether they differ by at most three standard errors.
    """

    check: str
    quantity: str
    printed: float
    measured: float
    standard_error: float
    agrees: bool


def compare_halves(checks: Sequence[Check], *, seed: int) -> tuple[HalvesOutcome, ...]:
    """Compare printed chances with what happens on other queries.

    Args:
        checks: The checks of a policy. Of each collection the first one is tried that has enough
            groups, and enough differences to print a detectable drop.
        seed: Seed of the halvings and samples.
    """
    outcomes: list[HalvesOutcome] = []
    done: set[str] = set()
    for number, check in enumerate(checks):
        is_large = check.error is None and len(np.unique(check.groups)) >= LEAST_GROUPS
        if is_large and check.collection not in done:
            generator = np.random.Generator(np.random.PCG64([seed, number]))
            compared = _compare_check(check, generator)
            outcomes += compared
            done |= {check.collection} if compared else set()
    return tuple(outcomes)


def _compare_check(check: Check, generator: np.random.Generator) -> list[HalvesOutcome]:
    codes, count = intervals.group_codes(check.groups, len(check.groups))
    rows: list[tuple[list[float], list[float]]] = []
    for _ in range(HALVINGS):
        drawn = generator.permutation(count)[:MOST_GROUPS]
        is_first, is_second = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        is_first[drawn[::2]] = True
        is_second[drawn[1::2]] = True
        seed = int(generator.integers(2**31))
        [result] = run_checks([_part(check, is_first[codes])], resamples=10_000, seed=seed)
        if result.min_detectable_drop is None:
            continue
        passes = (result.pass_rate or 0.0) + (result.small_pass_rate or 0.0)
        printed = [POWER, result.alarm_rate, passes, result.false_pass_rate]
        other = _part(check, is_second[codes])
        measured = _sample(other, result.min_detectable_drop, generator, seed)
        rows.append(([value or 0.0 for value in printed], measured))
    if len(rows) < HALVINGS / 2:
        return []
    means = np.array(rows).mean(axis=0)
    names = ("power at the detectable drop", "alarm", "pass", "false pass")
    return [
        _outcome(check.name, name, float(printed), float(measured), len(rows))
        for name, printed, measured in zip(names, *means, strict=True)
    ]


def _part(check: Check, keep: BoolArray) -> Check:
    """The same check on some of its queries."""
    return replace(
        check,
        baseline=check.baseline[keep],
        candidate=check.candidate[keep],
        groups=check.groups[keep],
    )


def _sample(check: Check, drop: float, generator: np.random.Generator, seed: int) -> list[float]:
    """Shares of alarms at a true drop, of alarms and passes at none, and of passes at m."""
    codes, count = intervals.group_codes(check.groups, len(check.groups))
    sums = np.bincount(codes, weights=check.difference, minlength=count)
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    centered = sums - sizes * (sums.sum() / sizes.sum())
    drawn = generator.integers(0, count, (SAMPLES, count))
    signs = 2.0 * generator.integers(0, 2, (SAMPLES, count)) - 1

    def shares(rows: FloatArray, lengths: FloatArray) -> tuple[float, float]:
        p = simulated_p_values(rows, seed)
        statuses = decide_runs(rows, lengths, p, check.max_drop)
        alarms = sum(status in ALARMS for status in statuses)
        return alarms / SAMPLES, sum(status in ACCEPTED for status in statuses) / SAMPLES

    lengths = sizes[drawn]
    power, _ = shares(centered[drawn] - drop * lengths, lengths)
    alarm, accepted = shares(sums * signs, np.broadcast_to(sizes, signs.shape))
    _, false_pass = shares(centered[drawn] - check.max_drop * lengths, lengths)
    return [power, alarm, accepted, false_pass]


def _outcome(
    check: str, quantity: str, printed: float, measured: float, halvings: int
) -> HalvesOutcome:
    share = min(max(printed, ALPHA), 1 - ALPHA)  # a share near 0 or 1 has no error of 0
    error = float(np.sqrt(share * (1 - share) / halvings))
    return HalvesOutcome(
        check=check,
        quantity=quantity,
        printed=printed,
        measured=measured,
        standard_error=error,
        agrees=abs(printed - measured) <= ERRORS * error,
    )


#: New repeats as many as there are on each side; one on each side; the observed ones in pairs.
RepeatDesign = Literal["new trials", "one new trial", "observed pairs"]


class CountedRate(StoredRecord):
    """How often something happened to a check.

    Attributes:
        check: The check; empty for all together.
        count: Runs in which it happened.
        runs: All runs.
        low: Lower end of the Clopper–Pearson interval, 95 % for all rates of a table together.
        high: Upper end.
        rate: Share of the runs in which it happened.
        agrees: Whether the interval is compatible with what is stated.
    """

    check: str
    count: int
    runs: int
    low: float
    high: float
    rate: float
    agrees: bool


def count_rate(check: str, count: int, runs: int, coverage: float) -> dict[str, Any]:
    """The fields of a :class:`CountedRate` but whether it agrees."""
    low, high = intervals.clopper_pearson(count, runs, coverage)
    return {
        "check": check,
        "count": count,
        "runs": runs,
        "low": low,
        "high": high,
        "rate": count / runs,
    }


class RepeatAlarms(CountedRate):
    """How often one check alarms where both sides are repeats of the gated system.

    Each check counts by itself: Holm's correction would only lower the rate.

    Attributes:
        design: ``new trials`` = as many on each side as there are; ``one new trial`` on each;
            ``observed pairs`` of single repeats, the earlier one as the baseline.
        trials: Repeats on each side; ``runs`` of observed ones are pairs.
        limit: The rate that is promised at most; None = nothing is promised. Single repeats hide
            that repeats have an effect of their own, and observed pairs share repeats.
    """

    design: RepeatDesign
    trials: int
    limit: float | None


def measure_repeat_alarms(
    checks: Sequence[Check], *, runs: int, seed: int
) -> tuple[RepeatAlarms, ...]:
    """Count the alarms of each check on repeats of one system.

    Args:
        checks: The gated system against itself; those without several repeats are left out.
        runs: Runs of each kind.
        seed: Seed of all random numbers.
    """
    known = [check for check in checks if check.error is None and check.repeats is not None]
    coverage = 1 - 0.05 / max(len(known) * len(get_args(RepeatDesign)), 1)
    return tuple(row for check in known for row in _count_alarms(check, runs, seed, coverage))


def _count_alarms(check: Check, runs: int, seed: int, coverage: float) -> Iterator[RepeatAlarms]:
    """One row a design."""
    values = None if check.repeats is None else check.repeats.candidate
    if values is None:
        return

    def build_row(
        design: RepeatDesign, repeats: int, count: int, runs: int, limit: float | None
    ) -> RepeatAlarms:
        rate = count_rate(check.name, count, runs, coverage)
        agrees = limit is None or rate["low"] <= limit
        return RepeatAlarms(**rate, design=design, trials=repeats, limit=limit, agrees=agrees)

    spread = measure_repeat_spread(values, check.groups)
    source = _RepeatSource(values, check.groups, spread.variance**0.5, check.max_drop)
    designs: dict[RepeatDesign, int] = {"new trials": len(values), "one new trial": 1}
    for design, repeats in designs.items():
        count = source.count_alarms(repeats, runs, seed)
        # One repeat a side shows ε, but no τ.
        limit = None if repeats == 1 and spread.variance > 0 else ALPHA
        yield build_row(design, repeats, count, runs, limit)
    pairs = [after - before for before, after in combinations(values[: estimates.MOST_SINGLE], 2)]
    rule = estimates.SingleRule(check.max_drop, tests=1, runs=1, seed=seed)
    statuses = estimates.decide_single_repeats(np.stack(pairs), check.groups, rule)
    count = sum(statuses.get(status, 0) for status in ALARMS)
    yield build_row("observed pairs", 1, count, len(pairs), None)


class _DrawnRun(NamedTuple):
    """One run before its sign-flip test: what :func:`decide_status` needs, and sums by group."""

    sums: FloatArray
    changed: int
    mean: float
    p_at_zero: float
    p_regressed: float


class _RepeatSource:
    """The observed repeats of one check, from which new ones are drawn."""

    def __init__(
        self, values: FloatArray, groups: IntArray, repeat_sd: float, max_drop: float
    ) -> None:
        self._values, self._repeat_sd, self._max_drop = values, repeat_sd, max_drop
        codes, count = intervals.group_codes(groups, values.shape[1])
        self._members = [np.flatnonzero(codes == code) for code in range(count)]
        self._sizes = np.bincount(codes, minlength=count)

    def count_alarms(self, repeats: int, runs: int, seed: int) -> int:
        """Runs in which so many new repeats a side end in an alarm."""
        rng = np.random.Generator(np.random.PCG64([seed, repeats]))
        drawn = [self._draw_run(repeats, rng) for _ in range(runs)]
        p_values = simulated_p_values(np.stack([run.sums for run in drawn]), seed + 3)
        return sum(
            decide_status(
                changed=run.changed,
                mean=run.mean,
                max_drop=self._max_drop,
                t_bound=np.nan,  # no pass is counted
                betting_bound=np.nan,
                p_fell=max(p, run.p_at_zero),
                p_regressed=run.p_regressed,
            )
            in ALARMS
            for run, p in zip(drawn, p_values.tolist(), strict=True)
        )

    def _draw_run(self, repeats: int, rng: np.random.Generator) -> _DrawnRun:
        count = len(self._members)
        drawn = rng.integers(0, count, count)
        rows = np.concatenate([self._members[group] for group in drawn])
        codes = np.repeat(np.arange(count), self._sizes[drawn])
        before, after = (self._draw_side(repeats, rows, codes, rng) for _ in range(2))
        difference = paired_difference(after.mean(axis=0), before.mean(axis=0))
        terms = () if repeats == 1 else estimates.CheckRepeats(before, after).make_terms(codes)
        estimate = intervals.estimate_mean(difference, codes, alpha=2 * ALPHA)
        estimate = add_repeat_variance(estimate, terms, alpha=2 * ALPHA)
        return _DrawnRun(
            sums=np.bincount(codes, weights=difference, minlength=count).astype(np.float64),
            changed=int(np.count_nonzero(difference)),
            mean=estimate.mean,
            p_at_zero=estimates.p_at_least(estimate, 0.0) if terms else 0.0,
            p_regressed=estimates.p_at_least(estimate, -self._max_drop),
        )

    def _draw_side(
        self, repeats: int, rows: IntArray, codes: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """(repeats, rows): new repeats of the drawn queries."""
        answers = rng.integers(0, len(self._values), (repeats, len(self._members)))[:, codes]
        moved = self._repeat_sd * rng.standard_normal((repeats, 1))
        drawn: FloatArray = self._values[answers, rows] + moved
        return drawn
