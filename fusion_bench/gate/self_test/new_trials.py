"""The gate on one system against itself, trial against trial: every alarm is a false one.

Where the gated system has several trials, new ones are drawn. Groups of queries (single queries,
without groups) are drawn with replacement, the same for both sides. Each new trial takes the
answers to each group from one of the observed trials, drawn independently. So trials differ on
single groups as they were seen to. Then each new trial is moved on all queries by a normal number
whose variance is the estimated σ²_τ. Both sides have the same true mean. Source: the bootstrap of
crossed random effects of Owen 2007, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2).
It draws whole trials; three are too few for that, so their effect is parametric here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.checks import Check
from fusion_bench.gate.estimates import p_at_least
from fusion_bench.gate.self_test.simulate import simulated_p_values
from fusion_bench.gate.trials.check_trials import MOST_SINGLE, CheckTrials
from fusion_bench.gate.trials.single_trials import SingleRule, decide_single_trials
from fusion_bench.gate.verdict import ALARMS, ALPHA, decide_status
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import clopper_pearson, estimate_mean
from fusion_bench.stats.resampling import group_codes
from fusion_bench.stats.trials.trial_spread import measure_trial_spread
from fusion_bench.stats.trials.trial_variance import add_trial_variance

#: New trials as many as there are on each side; one on each side; the observed ones in pairs.
TrialDesign = Literal["new trials", "one new trial", "observed pairs"]


class TrialAlarms(StoredRecord):
    """How often one check alarms where both sides are trials of the gated system.

    Attributes:
        check: The check, by itself: Holm's correction would only lower the rate.
        design: ``new trials`` = as many on each side as there are; ``one new trial`` on each;
            ``observed pairs`` of single trials, the earlier one as the baseline.
        trials: Trials on each side.
        count: Runs, or pairs, with an alarm.
        runs: All of them.
        low: Lower end of the Clopper–Pearson interval, 95 % for all such rows together.
        high: Upper end.
        limit: The rate that is promised at most; None = nothing is promised. Single trials hide
            that trials have an effect of their own, and observed pairs share trials.
        rate: ``count`` ÷ ``runs``.
        agrees: Whether the interval is compatible with the limit.
    """

    check: str
    design: TrialDesign
    trials: int
    count: int
    runs: int
    low: float
    high: float
    limit: float | None
    rate: float
    agrees: bool


def measure_trial_alarms(
    checks: Sequence[Check], *, runs: int, seed: int
) -> tuple[TrialAlarms, ...]:
    """Count the alarms of each check on trials of one system.

    Args:
        checks: The gated system against itself; those without several trials are left out.
        runs: Runs of each kind.
        seed: Seed of all random numbers.
    """
    counted = [row for check in checks for row in _count_alarms(check, runs, seed)]
    return tuple(_build_record(row, 1 - 0.05 / len(counted)) for row in counted)


@dataclass(frozen=True)
class _Counted:
    """The alarms of one check in one design; see :class:`TrialAlarms`."""

    check: str
    design: TrialDesign
    trials: int
    count: int
    runs: int
    limit: float | None


def _count_alarms(check: Check, runs: int, seed: int) -> Iterator[_Counted]:
    values = None if check.trials is None else check.trials.candidate
    if check.error is not None or values is None:
        return
    spread = measure_trial_spread(values, check.groups)
    source = _TrialSource(values, check.groups, spread.variance**0.5, check.max_drop)
    designs: dict[TrialDesign, int] = {"new trials": len(values), "one new trial": 1}
    for design, trials in designs.items():
        count = source.count_alarms(trials, runs, seed)
        # One trial a side shows ε, but no τ.
        limit = None if trials == 1 and spread.variance > 0 else ALPHA
        yield _Counted(check.name, design, trials, count, runs, limit)
    pairs = [after - before for before, after in combinations(values[:MOST_SINGLE], 2)]
    rule = SingleRule(check.max_drop, tests=1, runs=1, seed=seed)
    statuses = decide_single_trials(np.stack(pairs), check.groups, rule)
    count = sum(statuses.get(status, 0) for status in ALARMS)
    yield _Counted(check.name, "observed pairs", 1, count, len(pairs), None)


def _build_record(row: _Counted, coverage: float) -> TrialAlarms:
    low, high = clopper_pearson(row.count, row.runs, coverage)
    agrees = row.limit is None or low <= row.limit
    rate = row.count / row.runs
    return TrialAlarms(**asdict(row), low=low, high=high, rate=rate, agrees=agrees)


class _DrawnRun(NamedTuple):
    """One run before its sign-flip test: what :func:`decide_status` needs, and sums by group."""

    sums: FloatArray
    changed: int
    mean: float
    p_at_zero: float
    p_regressed: float


class _TrialSource:
    """The observed trials of one check, from which new ones are drawn."""

    def __init__(
        self, values: FloatArray, groups: IntArray, trial_sd: float, max_drop: float
    ) -> None:
        self._values, self._trial_sd, self._max_drop = values, trial_sd, max_drop
        codes, count = group_codes(groups, values.shape[1])
        self._members = [np.flatnonzero(codes == code) for code in range(count)]
        self._sizes = np.bincount(codes, minlength=count)

    def count_alarms(self, trials: int, runs: int, seed: int) -> int:
        """Runs in which so many new trials a side end in an alarm."""
        rng = np.random.Generator(np.random.PCG64([seed, trials]))
        drawn = [self._draw_run(trials, rng) for _ in range(runs)]
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

    def _draw_run(self, trials: int, rng: np.random.Generator) -> _DrawnRun:
        count = len(self._members)
        drawn = rng.integers(0, count, count)
        rows = np.concatenate([self._members[group] for group in drawn])
        codes = np.repeat(np.arange(count), self._sizes[drawn])
        before, after = (self._draw_side(trials, rows, codes, rng) for _ in range(2))
        difference = paired_difference(after.mean(axis=0), before.mean(axis=0))
        terms = () if trials == 1 else CheckTrials(before, after).make_terms(codes)
        estimate = estimate_mean(difference, codes, alpha=2 * ALPHA)
        estimate = add_trial_variance(estimate, terms, alpha=2 * ALPHA)
        return _DrawnRun(
            sums=np.bincount(codes, weights=difference, minlength=count).astype(np.float64),
            changed=int(np.count_nonzero(difference)),
            mean=estimate.mean,
            p_at_zero=p_at_least(estimate, 0.0) if terms else 0.0,
            p_regressed=p_at_least(estimate, -self._max_drop),
        )

    def _draw_side(
        self, trials: int, rows: IntArray, codes: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """(trials, rows): new trials of the drawn queries."""
        answers = rng.integers(0, len(self._values), (trials, len(self._members)))[:, codes]
        moved = self._trial_sd * rng.standard_normal((trials, 1))
        drawn: FloatArray = self._values[answers, rows] + moved
        return drawn
