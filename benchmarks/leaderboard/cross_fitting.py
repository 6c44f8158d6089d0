"""The gain of choosing on the same queries that decide, by cross-fitting.

Each fold is evaluated with what the other folds choose from one set of trials, so every query
decides. The folds share queries, hence Student's t is too narrow: on exact nulls it finds a gain in
4–9 % where 2.5 % is promised. The null distribution comes from the whole procedure instead: the
signs of whole groups are flipped for all trials together, and every flip chooses anew in each fold.
Where no trial differs from the default but by chance, each flip is as likely as the data, so the
test is exact (the randomization test of Lehmann & Romano 2005, section 15.2, with a statistic that
contains the choice). The trials must not depend on the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.leaderboard.flips import draw_flips, hash_group_ids
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.tune.trial_selection import PRIOR_WEIGHT, shrinkage_factor

#: Random flips, beside the data themselves.
FLIPS: Final = 9_999
#: Flips computed together.
BLOCK: Final = 1_000
#: Statistics that differ by less are equal.
NOISE: Final = 1e-9


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A cross-fitted gain.

    Attributes:
        chosen: Shape (K,): the trial that the other folds choose; −1 = the default.
        values: Shape (Q,): its difference to the default on the fold's queries.
        null: The statistic of the data and of each flip.
    """

    chosen: IntArray
    values: FloatArray
    null: FloatArray


def cross_fit(
    differences: FloatArray,
    folds: IntArray,
    group_ids: list[str],
    *,
    flips: int = FLIPS,
    seed: int = 0,
    offset: FloatArray,
    rival: FloatArray | None = None,
) -> CrossFit:
    """Choose on all folds but one, evaluate on that one, and test the mean by sign flips.

    Args:
        differences: Shape (T, Q): each trial − the default.
        folds: Shape (Q,): 0 … K−1; a group stands in one fold.
        group_ids: Shape (Q,): the query's id where no groups are declared.
        flips: Random flips.
        seed: Of the signs.
        offset: Shape (Q,): the default − the system that it is compared with, whose signs flip,
            too.
        rival: Shape (T, Q): each trial of that system − its default, where it is tuned as well,
            and chooses anew in every flip; None = it is not tuned.

    Raises:
        ConfigError: A group stands in two folds, or there are fewer than two folds.
    """
    problem = _Problem.prepare(differences, folds, group_ids, offset)
    against = None if rival is None else _Problem.prepare(rival, folds, group_ids, 0 * offset)

    def fit(signs: FloatArray) -> FloatArray:
        fitted = problem.fit(signs)[0]
        return fitted if against is None else fitted - against.fit(signs)[0]

    plain = np.ones((1, len(problem.sizes)))
    chosen = problem.fit(plain)[1][0]
    keys = hash_group_ids(seed, problem.ids)
    drawn = [problem.statistics(fit(plain))]
    for start in range(0, flips, BLOCK):
        signs = 2 * draw_flips(keys, start, min(start + BLOCK, flips)).T - 1
        drawn.append(problem.statistics(fit(signs)))
    values = offset + _pick_values(differences, folds, chosen)
    if rival is not None and against is not None:
        values = values - _pick_values(rival, folds, against.fit(plain)[1][0])
    return CrossFit(chosen, values, np.concatenate(drawn))


def _pick_values(differences: FloatArray, folds: IntArray, chosen: IntArray) -> FloatArray:
    """(Q,): each fold's differences of the trial chosen for it; 0 of the default."""
    values = np.zeros(differences.shape[1])
    for fold, trial in enumerate(chosen.tolist()):
        if trial >= 0:
            values[folds == fold] = differences[trial, folds == fold]
    return values


@dataclass(frozen=True, eq=False)
class _Problem:
    """Differences by group, with G groups in K folds.

    Attributes:
        ids: The groups.
        sums: Shape (T, G): sums of the differences over each group.
        sizes: Shape (G,): queries of each.
        folds: Shape (G,).
        offset: Shape (G,): sums of what is added to the chosen differences.
    """

    ids: list[str]
    sums: FloatArray
    sizes: IntArray
    folds: IntArray
    offset: FloatArray

    @classmethod
    def prepare(
        cls,
        differences: FloatArray,
        folds: IntArray,
        group_ids: list[str],
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
        return cls([str(each) for each in ids], sums, np.bincount(codes), by_group, shift)

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
        if groups < 2:  # no spread is known
            return np.full(len(signs), -1)
        gains = signs @ sums.T / queries
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
