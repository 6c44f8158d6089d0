"""How much of an oracle is chance: the best of many values in hindsight is high without a reason.

An oracle takes for each query the best of V variants. Its counterpart takes as many variants that
know nothing of the query: one fixed fusion whose scores are disturbed at random, as strongly as
makes their mean that of the V variants. What the oracle has above its counterpart could be won by
choosing well; the rest is the maximum of noise.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.measures import Measure, compute_measures
from fusion_bench.ranking.system_ranking import SystemRanking

#: Halvings of the interval, of logarithms, in which the strength of the disturbance is sought.
HALVINGS: Final = 7
#: Standard deviations of a query's fused scores: what changes nothing, and an order at random.
WEAKEST, STRONGEST = 0.01, 8.0
#: Between queries: no disturbed score of one reaches those of the next.
APART: Final = 1e4


def measure_chance(
    fixed: SystemRanking, variants: FloatArray, measure: Measure, qrels: Qrels, *, seed: int = 0
) -> float:
    """Mean over queries of the best of V disturbed fixed rankings.

    Args:
        fixed: The ranking that is disturbed.
        variants: Shape (V, Q): the values that the oracle chooses from, of the same queries.
        measure: What they are values of.
        qrels: The judgments.
        seed: Of the disturbances, which are independent normal ones.
    """
    disturbed = _Disturbed(fixed, len(variants), seed)

    def evaluate(strength: float) -> FloatArray:
        ranks = disturbed.ranks(strength)
        runs = fixed.runs
        return np.stack([compute_measures([measure], runs, row, qrels=qrels)[0] for row in ranks])

    target, weak, strong = float(variants.mean()), WEAKEST, STRONGEST
    for _ in range(HALVINGS):
        middle = math.sqrt(weak * strong)
        weak, strong = (middle, strong) if evaluate(middle).mean() > target else (weak, middle)
    return float(evaluate(strong).max(axis=0).mean())


class _Disturbed:
    """V copies of a ranking, each with its own disturbance.

    Args:
        fixed: The ranking.
        count: V.
        seed: Of the disturbances.
    """

    def __init__(self, fixed: SystemRanking, count: int, seed: int) -> None:
        query = fixed.runs.query_index
        self.start = fixed.runs.offsets[query]
        self.rows = np.lexsort((fixed.ranks_before_cut, query))
        self.keys = query * APART - _standardize(fixed.scores, query)
        self.noise = np.random.default_rng(seed).normal(size=(count, len(query)))

    def ranks(self, strength: float) -> IntArray:
        """(V, N): the 1-based positions; where scores are equal the fixed order stays."""
        return np.stack([self._rank(self.keys - strength * noise) for noise in self.noise])

    def _rank(self, keys: FloatArray) -> IntArray:
        order = self.rows[np.argsort(keys[self.rows], kind="stable")]
        ranks = np.empty(len(keys), dtype=np.int64)
        ranks[order] = np.arange(1, len(keys) + 1)
        return ranks - self.start


def _standardize(scores: FloatArray, query: IntArray) -> FloatArray:
    """Scores in standard deviations of their query; 0 where all are equal, or there is none."""
    finite = np.where(np.isfinite(scores), scores, 0.0)
    sizes = np.maximum(np.bincount(query), 1)
    centered = finite - (np.bincount(query, finite) / sizes)[query]
    spread = np.sqrt(np.bincount(query, centered**2) / sizes)[query]
    return np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 0)
