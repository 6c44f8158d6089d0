"""The gain of choosing on the same queries that decide, by cross-fitting.

Each fold is evaluated with what the other folds choose from one set of trials, so every query
decides. The folds share queries, hence Student's t is too narrow: on exact nulls it finds a gain in
4–9 % where 2.5 % is promised. The null distribution comes from the whole procedure instead: the
signs of whole groups are flipped for all trials together, and every flip chooses anew in each fold.
Where no trial differs from the default but by chance, each flip is as likely as the data, so the
test is exact (the randomization test of Lehmann & Romano 2005, section 15.2, with a statistic that
contains the choice). The trials must not depend on the data, see ``DATA_FREE_SAMPLERS``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, cast

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.report.tuning_records import Gain
from fusion_bench.stats.intervals import bell_mccaffrey_freedom, estimate_mean, t_quantile
from fusion_bench.stats.power import upper_tail
from fusion_bench.stats.repeat_variance import RepeatTerm, add_repeat_variance, move_quantile
from fusion_bench.stats.sign_flips import draw_flips, hash_group_ids
from fusion_bench.tune.gains import clip_ends
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.search import SearchResult
from fusion_bench.tune.trial_selection import (
    PRIOR_WEIGHT,
    evaluate_in_batches,
    shrinkage_factor,
    tuning_folds,
)

#: Random flips, beside the data themselves.
FLIPS: Final = 9_999
#: Flips computed together.
BLOCK: Final = 1_000
#: Statistics that differ by less are equal.
NOISE: Final = 1e-9

CrossFitRule: TypeAlias = Literal["shrinkage", "best"]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A cross-fitted gain.

    Attributes:
        chosen: Shape (K,): the trial that the other folds choose; −1 = the default.
        values: Shape (Q,): its difference to the default on the fold's queries.
        mean: Of the values.
        standard_error: Of the mean, by group (CR2).
        critical: c of the interval mean ± c · standard error.
        p: Two-sided; at most 2 · ``level`` where the interval excludes 0.
        null: The statistic of the data and of each flip.
    """

    chosen: IntArray
    values: FloatArray
    mean: float
    standard_error: float
    critical: float
    p: float
    null: FloatArray

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends."""
        width = self.critical * self.standard_error
        return self.mean - width, self.mean + width


def cross_fit(
    differences: FloatArray,
    folds: IntArray,
    group_ids: list[str],
    *,
    rule: CrossFitRule = "shrinkage",
    level: float = 0.025,
    flips: int = FLIPS,
    seed: int = 0,
    offset: FloatArray | None = None,
    rival: FloatArray | None = None,
) -> CrossFit:
    """Choose on all folds but one, evaluate on that one, and test the mean by sign flips.

    Args:
        differences: Shape (T, Q): each trial − the default.
        folds: Shape (Q,): 0 … K−1; a group stands in one fold.
        group_ids: Shape (Q,): the query's id where no groups are declared.
        rule: How a trial is chosen.
        level: One-sided.
        flips: Random flips.
        seed: Of the signs.
        offset: Shape (Q,): the default − the system that it is compared with, whose signs flip,
            too; None = that is the default itself.
        rival: Shape (T, Q): each trial of that system − its default, where it is tuned as well,
            and chooses anew in every flip; None = it is not tuned.

    Raises:
        ConfigError: A group stands in two folds, or there are fewer than two folds.
    """
    base = np.zeros(differences.shape[1]) if offset is None else offset
    problem = _Problem.prepare(differences, folds, group_ids, rule, base)
    against = None if rival is None else _Problem.prepare(rival, folds, group_ids, rule, 0 * base)

    def fit(signs: FloatArray) -> FloatArray:
        fitted = problem.fit(signs)[0]
        return fitted if against is None else fitted - against.fit(signs)[0]

    plain = np.ones((1, len(problem.sizes)))
    sums, chosen = fit(plain), problem.fit(plain)[1][0]
    observed = float(problem.statistics(sums)[0])
    keys = hash_group_ids(seed, problem.ids)
    drawn = [np.array([observed])]
    for start in range(0, flips, BLOCK):
        signs = 2 * draw_flips(keys, start, min(start + BLOCK, flips)).T - 1
        drawn.append(problem.statistics(fit(signs)))
    null = np.concatenate(drawn)
    mean, error = problem.describe(sums)
    values = base + _pick_values(differences, folds, chosen)
    if rival is not None and against is not None:
        values = values - _pick_values(rival, folds, against.fit(plain)[1][0])
    freedom = bell_mccaffrey_freedom(problem.sizes)
    p = two_sided_p(null, abs(observed), upper_tail(abs(observed), freedom))
    p = p if values.any() else 1.0
    rank = math.floor(level * len(null) + NOISE)
    tails = [np.sort(side)[-rank] if rank else math.inf for side in (null, -null)]
    critical = max(*map(float, tails), t_quantile(freedom, 1 - level))
    return CrossFit(chosen, values, float(mean[0]), float(error[0]), critical, p, null)


def _pick_values(differences: FloatArray, folds: IntArray, chosen: IntArray) -> FloatArray:
    """(Q,): each fold's differences of the trial chosen for it; 0 of the default."""
    values = np.zeros(differences.shape[1])
    for fold, trial in enumerate(chosen.tolist()):
        if trial >= 0:
            values[folds == fold] = differences[trial, folds == fold]
    return values


def two_sided_p(null: FloatArray, statistic: float, least: float) -> float:
    """Twice the greater share of the null that a statistic's size reaches on one side.

    Args:
        null: The statistics of the data and of each flip.
        statistic: At least 0.
        least: The one-sided p is no smaller.
    """
    shares = [float((side >= statistic - NOISE).mean()) for side in (null, -null)]
    return min(2 * max(*shares, least), 1.0)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Differences by group, with G groups in K folds.

    Attributes:
        ids: The groups.
        sums: Shape (T, G): sums of the differences over each group.
        sizes: Shape (G,): queries of each.
        folds: Shape (G,).
        rule: How a trial is chosen.
        offset: Shape (G,): sums of what is added to the chosen differences.
    """

    ids: list[str]
    sums: FloatArray
    sizes: IntArray
    folds: IntArray
    rule: CrossFitRule
    offset: FloatArray

    @classmethod
    def prepare(
        cls,
        differences: FloatArray,
        folds: IntArray,
        group_ids: list[str],
        rule: CrossFitRule,
        offset: FloatArray,
    ) -> _Problem:
        """Sum over groups."""
        ids, first, codes = np.unique(group_ids, return_index=True, return_inverse=True)
        by_group = folds[first]
        if (by_group[codes] != folds).any() or len(set(by_group.tolist())) < 2:
            raise ConfigError("folds: must be two or more, and a group must stand in one of them")
        sums = np.zeros((len(differences), len(ids)))
        np.add.at(sums.T, codes, differences.T)
        shift = np.bincount(codes, weights=offset).astype(np.float64)
        return cls([str(each) for each in ids], sums, np.bincount(codes), by_group, rule, shift)

    def fit(self, signs: FloatArray) -> tuple[FloatArray, IntArray]:
        """Cross-fit under each row of signs.

        Args:
            signs: Shape (B, G): 1 or −1.

        Returns:
            Shape (B, G): the sum of each group under what the other folds choose; (B, K): that.
        """
        count = int(self.folds.max()) + 1
        fitted = np.zeros(signs.shape)
        chosen = np.empty((len(signs), count), dtype=np.int64)
        for fold in range(count):
            unseen = self.folds == fold
            trial = self._choose(signs[:, ~unseen], self.sums[:, ~unseen], self.sizes[~unseen])
            kept = np.where(trial[:, None] >= 0, self.sums[:, unseen][trial], 0.0)
            fitted[:, unseen] = signs[:, unseen] * (kept + self.offset[unseen])
            chosen[:, fold] = trial
        return fitted, chosen

    def _choose(self, signs: FloatArray, sums: FloatArray, sizes: IntArray) -> IntArray:
        """(B,): the trial of the greatest gain, the first of equals; −1 where none is above 0."""
        queries, groups = int(sizes.sum()), len(sizes)
        if groups < 2 and self.rule == "shrinkage":  # no spread is known
            return np.full(len(signs), -1)
        gains = signs @ sums.T / queries
        if self.rule == "shrinkage":
            weights = _cr2_weights(sizes)
            squares = (sums**2 @ weights) + gains**2 * float(sizes**2 @ weights)
            squares -= 2 * gains * (signs @ (sums * (sizes * weights)).T)
            loss = PRIOR_WEIGHT / math.sqrt(groups) * np.sqrt(np.maximum(squares, 0.0))
            gains = shrinkage_factor(groups) * (gains - loss)
        best = gains.argmax(axis=1)
        is_better = gains[np.arange(len(best)), best] > NOISE
        return np.where(is_better, best, -1)

    def describe(self, fitted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and standard errors, each (B,), of fitted sums of shape (B, G)."""
        means = fitted.sum(axis=1) / self.sizes.sum()
        residuals = fitted - means[:, None] * self.sizes
        return means, np.sqrt(residuals**2 @ _cr2_weights(self.sizes))

    def statistics(self, fitted: FloatArray) -> FloatArray:
        """Mean ÷ standard error, (B,); 0 where nothing differs."""
        means, errors = self.describe(fitted)
        is_known = errors > NOISE * np.abs(means)
        return np.where(is_known, means / np.where(is_known, errors, 1.0), 0.0)


def _cr2_weights(sizes: IntArray) -> FloatArray:
    """What each group's squared residual sum weighs in the variance, (G,); see ``intervals``."""
    queries = sizes.sum()
    return np.asarray(1 / (1 - sizes / queries) / queries**2)


def widen_fit(fit: CrossFit, terms: Sequence[RepeatTerm], groups: IntArray) -> CrossFit:
    """Add what the trials of the lists add to the variance of a gain.

    Flips turn queries and know nothing of trials. As in ``stats.max_t``, the t of the widened gain
    counts as the t of a flip with the same Student's p, and c is carried over to its degrees of
    freedom likewise.

    Args:
        fit: Of the means over trials.
        terms: From ``make_repeat_terms``; empty = the fit as it is.
        groups: Shape (Q,): codes of the groups.
    """
    by_queries = estimate_mean(fit.values, groups)
    widened = add_repeat_variance(by_queries, terms)
    if not (widened.repeat_variance > 0 and fit.standard_error > 0):
        return fit
    t = abs(fit.mean) / widened.standard_error
    moved = move_quantile(t, widened.freedom, by_queries.freedom)
    return replace(
        fit,
        standard_error=widened.standard_error,
        critical=move_quantile(fit.critical, by_queries.freedom, widened.freedom),
        p=two_sided_p(fit.null, moved, upper_tail(t, widened.freedom)),
    )


#: Flips that exceed the critical value, at the level of the test; and most flips.
EXCEEDING, MOST_FLIPS = 25, 100_000


def fit_all_queries(evaluation: HeldOutEvaluation, result: SearchResult) -> CrossFit:
    """Choose among the trials of a search without each fold, and evaluate that on the fold.

    Args:
        evaluation: Of all queries, see :attr:`QuerySplit.is_cross_fitted`.
        result: A search whose trials do not depend on the values.
    """
    objective, tuning = evaluation.objective, evaluation.tuning
    level = evaluation.verdict_level
    values = evaluate_in_batches(objective, [trial.params for trial in result.computed_trials])
    default = objective.evaluate_params([objective.default_params])[0]
    differences = values - default
    differences[np.abs(differences) <= NOISE] = 0.0
    return cross_fit(
        differences,
        tuning_folds(objective, evaluation.split, tuning),
        list(objective.runs.groups),
        rule=cast("CrossFitRule", tuning.choose),
        level=level,
        flips=min(max(FLIPS, math.ceil(EXCEEDING / level)), MOST_FLIPS),
        seed=tuning.seed,
    )


def adopt_fit(gain: Gain, fit: CrossFit, *, is_bounded: bool) -> Gain:
    """The gain with the interval and the p of the cross-fitting test.

    Args:
        gain: Of the values of ``fit``.
        fit: Of all queries.
        is_bounded: Values lie in [0, 1].
    """
    ends = fit.interval if fit.standard_error > 0 else (math.nan, math.nan)
    low, high = clip_ends(*ends, is_bounded=is_bounded)
    return gain.model_copy(update={"p": fit.p, "low": low, "high": high})
