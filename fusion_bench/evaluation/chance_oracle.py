"""How much of an oracle is chance: the best of many values in hindsight is high without a reason.

An oracle takes for each query the best of V variants. Its counterpart takes as many variants that
know nothing of the query: one fixed fusion whose scores are disturbed at random, as strongly as
makes their mean that of the V variants. What the oracle has above its counterpart is more than the
maximum of noise. The disturbances are independent: variants that resemble each other can stay
below it, and then nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
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
from fusion_bench.ranking.system_scores import query_blocks

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
    blocks = []
    for _, some in query_blocks(runs, [measure]):
        (_, plain, part), *others = plain_systems(fixed, some)
        if others:
            return None
        blocks.append(DisturbedRanking(rank_candidates(plain, part), measure))
    return measure_chance(blocks, variants, measure, seed=seed)


def measure_chance(
    blocks: Sequence[DisturbedRanking], variants: FloatArray, measure: Measure, *, seed: int = 0
) -> float:
    """Mean over queries of the best of V disturbed fixed rankings.

    Args:
        blocks: The ranking that is disturbed, of some queries each.
        variants: Shape (V, Q): the values that the oracle chooses from, of the same queries.
        measure: What they are values of.
        seed: Of the disturbances, which are independent normal ones.
    """
    limits = np.cumsum([len(block.keys) for block in blocks])
    noise = np.random.default_rng(seed).normal(size=(len(variants), limits[-1]))
    noises = np.split(noise, limits[:-1], axis=1)

    @cache
    def evaluate(copy: int, strength: float) -> FloatArray:
        return np.concatenate(
            [
                compute_measures([measure], block.runs, block.rank(strength * part[copy]))[0]
                for block, part in zip(blocks, noises, strict=True)
            ]
        )

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


class DisturbedRanking:
    """A ranking whose scores are disturbed.

    Args:
        fixed: The ranking.
        measure: What its order is measured by.
    """

    def __init__(self, fixed: SystemRanking, measure: Measure) -> None:
        self.runs = replace(fixed.runs)  # without what was derived from them
        self.reads_all = measure.required_ranks != "relevant" or measure.judged_only
        query = self.runs.query_index
        self.rows = np.lexsort((fixed.ranks_before_cut, query))
        self.keys = query * APART - _standardize(fixed.scores, query)

    def rank(self, disturbance: FloatArray) -> IntArray:
        """(N,): the 1-based positions; where scores are equal the fixed order stays.

        Where only the places of relevant documents count, those behind the last one have none: 0.

        Args:
            disturbance: Shape (N,): is added to the scores, in standard deviations of a query's.
        """
        keys = self.keys - disturbance
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
