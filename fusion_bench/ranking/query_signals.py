"""Signals of a system: numbers per query that say how likely it is that an answer is there.

A signal is computed without judgments. Greater means that an answer is more likely. NaN means that
the query has no such number, and is never answered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import count_within_queries, to_offsets
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.query_splits import hash_position
from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment.abstain import (
    AGREEMENT,
    FUSED_MARGIN,
    FUSED_TOP,
    LIST_TOP,
    RERANK_TOP,
    Abstain,
)
from fusion_bench.experiment.system import System
from fusion_bench.measures.rankings import no_relevant
from fusion_bench.methods.blend.formulas import RerankBlend
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_ranking import fused_list

#: Hashed with the ids of groups: which queries are masked.
MASK: Final = "mask"
#: Two lists agree on documents among so many first ones.
AGREEMENT_DEPTH: Final = 10


def compute_signals(system: System, runs: AlignedRuns) -> dict[str, FloatArray]:
    """Every signal of a system by name, each of shape (Q,).

    ``fused top`` is the best score before any blend, ``fused margin`` the best minus the second,
    ``top:LIST`` the greatest raw score of a list, ``rerank top`` the greatest raw score that the
    reranker gives to the documents it reorders, ``agreement`` the mean over pairs of lists of the
    common documents of the first ten ÷ 10. A list whose scores follow from its ranks has no
    ``top:LIST``, and a reranker of which only the order is known no ``rerank top``.

    Args:
        system: Fitted, where it has trained parts.
        runs: All sources of the dataset.
    """
    if system.collapse is not None and system.collapse.place == "reranked":
        system = system.model_copy(update={"collapse": None})  # they are of the lists before it
    count, rows = len(runs.queries), runs.rows(system.base_runs)
    scored = {
        name
        for name, ranks, scores in zip(runs.rerankers, runs.rerank_ranks, runs.rerank, strict=True)
        if runs.spaces.get(name) != "order" and not scores_follow_ranks(ranks, scores)
    }
    signals = {
        f"{LIST_TOP}{name}": greatest_by_query(runs.scores[row], runs.query_index, count)
        for name, row in zip(system.base_runs, rows, strict=True)
        if not scores_follow_ranks(runs.ranks[row], runs.scores[row])
    }
    signals |= {FUSED_TOP: np.full(count, np.nan), FUSED_MARGIN: np.full(count, np.nan)}
    if len(rows) > 1:
        signals[AGREEMENT] = measure_agreement(runs, rows)
    for index, plain, part in plain_systems(system, runs):
        view = plain.active_runs(part)
        fused = fused_list(view, plain.fusion)
        first, second = (
            _score_at(view, fused.scores, fused.positions == place) for place in (1, 2)
        )
        signals[FUSED_TOP][index] = first
        signals[FUSED_MARGIN][index] = first - second
        if isinstance(plain.blend, RerankBlend) and plain.blend.reranker in scored:
            reranker = plain.blend.reranker
            scores = view.rerank[view.rerankers.index(reranker)]
            seen = plain.blend.select_candidates(view, fused)
            top = greatest_by_query(
                np.where(seen, scores, np.nan), view.query_index, len(view.queries)
            )
            signals.setdefault(RERANK_TOP, np.full(count, np.nan))[index] = top
    return signals


def signal_of(system: System, runs: AlignedRuns, name: str) -> FloatArray:
    """One signal of a system, of shape (Q,).

    Args:
        system: Fitted, where it has trained parts.
        runs: All sources of the dataset.
        name: The signal.

    Raises:
        UnknownNameError: The system has no such signal on these lists.
    """
    signals = compute_signals(system, runs)
    if name not in signals:
        raise UnknownNameError("signal", name, signals, where=f"system {system.name!r}: abstain")
    return signals[name]


def answered_queries(system: System, runs: AlignedRuns) -> BoolArray:
    """(Q,): the queries that a system answers; all of them if it never abstains.

    Args:
        system: Fitted, where it has trained parts.
        runs: All sources of the dataset.

    Raises:
        ConfigError: Its threshold is not known yet.
        UnknownNameError: It has no such signal on these lists.
    """
    if system.abstain is None:
        return np.ones(len(runs.queries), dtype=bool)
    threshold = system.abstain.find_threshold(system.name)
    return signal_of(system, runs, system.abstain.signal) > threshold  # NaN is not


@dataclass(frozen=True)
class AnswerDecision:
    """Whether a system answers a query, and the signal that decides.

    Attributes:
        answered: Whether the signal is above the threshold.
        signal: Its name.
        value: Its value; None = the query has none, and is not answered.
        above: The threshold.
    """

    answered: bool
    signal: str
    value: float | None
    above: float

    def __str__(self) -> str:
        """The decision as a sentence without its end."""
        if self.value is None:
            return f"not answered: the query has no {self.signal}"
        verb, is_above = ("answered", "is") if self.answered else ("not answered", "is not")
        return f"{verb}: {self.signal} {self.value:.6g} {is_above} above {self.above:.6g}"


def decide_answer(
    abstain: Abstain, system: str, values: FloatArray | None, query: int = 0
) -> AnswerDecision:
    """Whether a system that abstains answers one query.

    Args:
        abstain: Has a threshold.
        system: Name of the system.
        values: Shape (Q,): its signal; None = no query has it.
        query: Index of the query.

    Raises:
        ConfigError: Its threshold is not known yet.
    """
    above = abstain.find_threshold(system)
    value = math.nan if values is None else float(values[query])
    shown = None if math.isnan(value) else value
    return AnswerDecision(value > above, abstain.signal, shown, above)


def greatest_by_query(values: FloatArray, query: IntArray, count: int) -> FloatArray:
    """(Q,): the greatest value of each query; NaN without any."""
    greatest = np.full(count, -np.inf)
    known = ~np.isnan(values)
    np.maximum.at(greatest, query[known], values[known])
    return np.where(np.isneginf(greatest), np.nan, greatest)


def _score_at(view: AlignedRuns, scores: FloatArray, is_there: BoolArray) -> FloatArray:
    """(Q,): the score of the one candidate of each query that is marked; NaN without one."""
    found = np.full(len(view.queries), np.nan)
    found[view.query_index[is_there]] = scores[is_there]
    return found


def measure_agreement(runs: AlignedRuns, rows: list[int]) -> FloatArray:
    """(Q,): the mean over pairs of lists of the common documents of their first ten ÷ 10."""
    first = (runs.ranks[rows] > 0) & (runs.ranks[rows] <= AGREEMENT_DEPTH)
    pairs = [*combinations(range(len(rows)), 2)]
    common = np.zeros(len(runs.queries))
    for i, j in pairs:
        common += np.bincount(runs.query_index[first[i] & first[j]], minlength=len(common))
    return common / (AGREEMENT_DEPTH * len(pairs))


def scores_follow_ranks(ranks: IntArray, scores: FloatArray) -> bool:
    """Whether the scores of a list are one function of rank over all its queries.

    Args:
        ranks: Shape (N,), 1-based; 0 = not in the list.
        scores: Shape (N,).
    """
    order = np.argsort(ranks, kind="stable")
    order = order[ranks[order] > 0]
    same_rank = np.diff(ranks[order]) == 0
    return bool(same_rank.any() and (np.diff(scores[order])[same_rank] == 0).all())


def mask_half(runs: AlignedRuns) -> tuple[AlignedRuns, BoolArray]:
    """Queries with a relevant document, half of which lose theirs; and (Q,): which keep them.

    The hash of its group decides, so that no query and no group is on both sides.

    Args:
        runs: Aligned runs; of several repeats the first.
    """
    known = runs.subset(~no_relevant(runs, runs.binary_relevance))
    masked = np.array([hash_position(group, MASK) < 0.5 for group in known.groups])
    return mask_relevant(known, masked), ~masked


def mask_relevant(runs: AlignedRuns, masked: BoolArray) -> AlignedRuns:
    """The runs without the relevant documents of some queries; ranks close up.

    Scores that follow from ranks are those of the new ranks: otherwise they would show the mask.

    Args:
        runs: Aligned runs; of several repeats the first.
        masked: Shape (Q,): the queries that lose their relevant documents.
    """
    is_relevant = runs.judged & (runs.grades >= runs.binary_relevance)
    kept = np.flatnonzero(~(masked[runs.query_index] & is_relevant))
    query = runs.query_index[kept]
    ranks, scores = _close_up(runs.ranks, runs.scores, kept, query)
    rerank_ranks, rerank = _close_up(runs.rerank_ranks, runs.rerank, kept, query)
    return replace(
        runs,
        later=(),
        repeat_counts={},
        offsets=to_offsets(np.bincount(query, minlength=len(runs.queries))),
        documents=runs.documents[kept],
        ranks=ranks,
        scores=scores,
        grades=runs.grades[kept],
        judged=runs.judged[kept],
        rerank=rerank,
        rerank_ranks=rerank_ranks,
    )


def _close_up(
    ranks: IntArray, scores: FloatArray, kept: IntArray, query: IntArray
) -> tuple[IntArray, FloatArray]:
    """Ranks and scores, (S, n), of the candidates that are kept; ranks counted anew from 1.

    Args:
        ranks: Shape (S, N), 1-based; 0 = not in the list.
        scores: Shape (S, N).
        kept: Shape (n,): candidates.
        query: Shape (n,): the query of each.
    """
    new_ranks, new_scores = np.zeros_like(ranks[:, kept]), scores[:, kept]
    for row, old_ranks in enumerate(ranks):
        there = np.flatnonzero(old_ranks[kept] > 0)
        there = there[np.lexsort((old_ranks[kept[there]], query[there]))]
        sizes = np.bincount(query[there], minlength=int(query.max(initial=-1)) + 1)
        new_ranks[row, there] = count_within_queries(to_offsets(sizes))
        if scores_follow_ranks(old_ranks, scores[row]):
            by_rank = np.zeros(int(old_ranks.max(initial=0)) + 1)
            by_rank[old_ranks] = scores[row]
            new_scores[row, there] = by_rank[new_ranks[row, there]]
    return new_ranks, new_scores
