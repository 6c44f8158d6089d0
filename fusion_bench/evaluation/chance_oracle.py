"""How much of an oracle is chance: the best of many values in hindsight is high without a reason.

An oracle takes for each query the best of V variants. Its counterpart takes as many variants that
know nothing of the query: one fixed fusion whose scores are disturbed at random, as strongly as
makes their mean that of the V variants. What the oracle has above its counterpart is more than the
maximum of noise. The disturbances are independent: variants that resemble each other can stay
below it, and then nothing is known.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import count_within_queries, to_offsets
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, compute_measures
from fusion_bench.measures.rankings import relevant_candidates
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_ranking import SystemRanking, rank_candidates

#: Halvings of the interval, of logarithms, in which the strength of the disturbance is sought.
HALVINGS: Final = 7
#: Standard deviations of a query's fused scores: what changes nothing, and an order at random.
WEAKEST, STRONGEST = 0.01, 8.0
#: Copies whose mean tells the strength.
PROBES: Final = 3
#: Between queries: no disturbed score of one reaches those of the next.
APART: Final = 1e4


def find_chance(
    fixed: System, runs: AlignedRuns, variants: FloatArray, measure: Measure, *, seed: int = 0
) -> float | None:
    """Mean of the counterpart of an oracle; None where classes of queries are ranked apart.

    Args:
        fixed: The fusion that is disturbed.
        runs: All sources of the dataset.
        variants: Shape (V, Q): the values that the oracle chooses from.
        measure: What they are values of.
        seed: Of the disturbances.
    """
    (_, plain, part), *others = plain_systems(fixed, runs)
    if others:
        return None
    return measure_chance(rank_candidates(plain, part), variants, measure, seed=seed)


def measure_chance(
    fixed: SystemRanking, variants: FloatArray, measure: Measure, *, seed: int = 0
) -> float:
    """Mean over queries of the best of V disturbed fixed rankings.

    Args:
        fixed: The ranking that is disturbed.
        variants: Shape (V, Q): the values that the oracle chooses from, of the same queries.
        measure: What they are values of.
        seed: Of the disturbances, which are independent normal ones.
    """
    reads_all = measure.required_ranks != "relevant" or measure.judged_only
    disturbed = _Disturbed(fixed, len(variants), seed, reads_all=reads_all)

    @cache
    def evaluate(copy: int, strength: float) -> FloatArray:
        ranks = disturbed.rank(copy, strength)
        [values] = compute_measures([measure], fixed.runs, ranks)
        return np.asarray(values)

    probes = range(min(PROBES, len(variants)))
    target, weak, strong = float(variants.mean()), WEAKEST, STRONGEST
    for _ in range(HALVINGS):
        middle = math.sqrt(weak * strong)
        mean = np.mean([evaluate(copy, middle) for copy in probes])
        weak, strong = (middle, strong) if mean > target else (weak, middle)
    best = evaluate(0, strong)
    for copy in range(1, len(variants)):
        best = np.maximum(best, evaluate(copy, strong))
    return float(best.mean())


class _Disturbed:
    """V copies of a ranking, each with its own disturbance.

    Args:
        fixed: The ranking.
        count: V.
        seed: Of the disturbances.
        reads_all: Whether more is asked than the places of relevant documents.
    """

    def __init__(self, fixed: SystemRanking, count: int, seed: int, *, reads_all: bool) -> None:
        query = fixed.runs.query_index
        self.runs, self.reads_all = fixed.runs, reads_all
        self.rows = np.lexsort((fixed.ranks_before_cut, query))
        self.keys = query * APART - _standardize(fixed.scores, query)
        self.noise = np.random.default_rng(seed).normal(size=(count, len(query)))

    def rank(self, copy: int, strength: float) -> IntArray:
        """(N,): the 1-based positions of a copy; where scores are equal the fixed order stays.

        Where nothing else is asked, those behind the last relevant document have none: 0.
        """
        keys = self.keys - strength * self.noise[copy]
        last = np.full(len(self.runs.queries), np.inf if self.reads_all else -np.inf)
        relevant = relevant_candidates(self.runs)
        np.maximum.at(last, relevant.query, keys[relevant.rows])
        rows = self.rows[keys[self.rows] <= last[self.runs.query_index]]
        chosen = keys[rows]
        order = np.argsort(chosen)
        if (np.diff(chosen[order]) == 0).any():
            order = np.argsort(chosen, kind="stable")
        sizes = np.bincount(self.runs.query_index[rows], minlength=len(self.runs.queries))
        ranks = np.zeros(len(keys), dtype=np.int64)
        ranks[rows[order]] = count_within_queries(to_offsets(sizes))
        return ranks


def _standardize(scores: FloatArray, query: IntArray) -> FloatArray:
    """Scores in standard deviations of their query; 0 where all are equal, or there is none."""
    finite = np.where(np.isfinite(scores), scores, 0.0)
    sizes = np.maximum(np.bincount(query), 1)
    centered = finite - (np.bincount(query, finite) / sizes)[query]
    spread = np.sqrt(np.bincount(query, centered**2) / sizes)[query]
    return np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 0)
