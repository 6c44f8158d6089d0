"""Is a rerank list what it says it is? Range, ties, saturation, reused scores, quality.

Rank measures do not see the scale of scores, and a blend lives on it. So each list is looked at
before anything is concluded from it: scores that are the first stage's dealt out again in a new
order, a sigmoid that was applied twice, a reranker that is worse than no reranker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, positions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.rows.grouped_rows import number_by_appearance, query_slices
from fusion_bench.data.run import Run
from fusion_bench.measures import parse_measure
from fusion_bench.stats.intervals import estimate_mean

#: Scores count as equal to the first stage's up to this part of them: files keep few decimals.
SAME = 1e-5
#: From this share of the queries on, a list's scores are called dealt out.
DEALT = 0.9
#: The sigmoid of anything in [0, 1] lies in [.5, .7311]; a little room for half precision.
TWICE = (0.49, 0.74)
#: A list on the unit scale that uses less of it is called squeezed.
NARROW = 0.3
#: Shares of scores at an end of the scale, and of queries with a tie at the top, worth a word.
SATURATED, TIED = 0.05, 0.1
#: The sigmoid of a greater logit is 1 in float64; of this one, 1 in float32.
FLAT_LOGIT = 17.0


@dataclass(frozen=True)
class RerankListCheck:
    """What was found of one rerank list.

    Attributes:
        name: The list.
        space: Its declared score space.
        low: Least score.
        high: Greatest score.
        tied_at_top: Share of the queries whose best score two documents or more have.
        saturated: Share of the scores at an end of the unit scale (``unit``, ``logit``).
        reused_run: The run whose scores it holds in another order; None = none.
        reused_share: Share of the queries where that is so.
        ndcg_difference: Run → difference in nDCG@10, list − run, over the list's own candidates,
            with its 95 % interval.
    """

    name: str
    space: ScoreSpace
    low: float
    high: float
    tied_at_top: float
    saturated: float
    reused_run: str | None
    reused_share: float
    ndcg_difference: dict[str, tuple[float, float, float]]

    @property
    def is_squeezed(self) -> bool:
        """Whether it uses little of the unit scale."""
        return self.space == "unit" and self.high - self.low < NARROW

    @property
    def is_sigmoid_twice(self) -> bool:
        """Whether its scores lie where a second sigmoid would have put them."""
        return self.is_squeezed and TWICE[0] <= self.low and self.high <= TWICE[1]

    @property
    def is_bad(self) -> bool:
        """Whether it is worse than every run, beyond chance."""
        return bool(self.ndcg_difference) and all(
            high < 0 for _, _, high in self.ndcg_difference.values()
        )


def check_rerank_list(
    run: Run, space: ScoreSpace, aligned: AlignedRuns, sources: dict[str, Run]
) -> RerankListCheck:
    """Look at one rerank list.

    Args:
        run: The list.
        space: What its scores are said to mean.
        aligned: With this list among its rerankers.
        sources: The runs by name, as they were read.
    """
    dealt = {name: _dealt(run, source) for name, source in sources.items()}
    # By name: of runs that fit equally well the order of the dataset must not choose.
    best = max(sorted(dealt), key=dealt.__getitem__, default=None)
    is_dealt = best is not None and dealt[best] >= DEALT
    return RerankListCheck(
        name=run.name,
        space=space,
        low=float(run.scores.min()),
        high=float(run.scores.max()),
        tied_at_top=_tied_at_top(run),
        saturated=_saturated(run.scores, space),
        reused_run=best if is_dealt else None,
        reused_share=dealt[best] if best is not None else 0.0,
        ndcg_difference=_gain(aligned, aligned.rerankers.index(run.name)),
    )


def describe_problems(check: RerankListCheck) -> Iterator[str]:
    """One sentence for each thing to know before the list's scores are believed."""
    name = f"rerank list {check.name!r}"
    if check.reused_run is not None:
        known = check.space == "order"
        remedy = "as score_space: order says" if known else "declare score_space: order"
        yield (
            f"the scores of {name} are those of run {check.reused_run!r} dealt out again "
            f"({check.reused_share:.0%} of its queries): only their order says anything, {remedy}"
        )
    if check.is_bad:
        run, (mean, low, high) = max(check.ndcg_difference.items(), key=lambda item: item[1][0])
        yield (
            f"{name} is a bad reranker: on its own candidates it is worse than every run, by "
            f"{-mean:.4f} nDCG@10 than {run!r} ([{low:+.4f}, {high:+.4f}]) and by more than the "
            "others"
        )
    if check.is_squeezed:
        cause = ", where a sigmoid applied twice would put them" if check.is_sigmoid_twice else ""
        yield (
            f"{name} is squeezed: its scores lie in [{check.low:.4g}, {check.high:.4g}]{cause}; a "
            "blend that mixes them with other scores weighs the reranker less than it says"
        )
    if check.space == "logit" and check.low >= 0 and check.high <= 1:
        yield (
            f"every score of {name} lies between 0 and 1, and it is declared logit: if these are "
            "probabilities, say score_space: unit"
        )
    if check.saturated >= SATURATED:
        share = f"{check.saturated:.0%} of the scores of {name}"
        yield f"{share} stand at an end of the scale, where nothing tells them apart"
    if check.tied_at_top >= TIED:
        yield f"{name} has a tie at the top in {check.tied_at_top:.0%} of its queries"


def _dealt(run: Run, source: Run) -> float:
    """Share of the list's queries whose scores are the source's best ones in another order."""
    rows = dict(query_slices(source.queries, source.offsets))
    compared = hits = 0
    for query, part in query_slices(run.queries, run.offsets):
        scores = np.sort(run.scores[part])[::-1]
        if len(scores) < 2 or scores[0] == scores[-1]:
            continue  # says nothing
        compared += 1
        best_scores = np.sort(source.scores[rows.get(query, slice(0))])[::-1][: len(scores)]
        if len(best_scores) == len(scores):
            hits += bool(np.allclose(scores, best_scores, rtol=SAME, atol=0))
    return hits / compared if compared else 0.0


def _tied_at_top(run: Run) -> float:
    sizes = np.diff(run.offsets)
    begins, sizes = run.offsets[:-1][sizes > 0], sizes[sizes > 0]
    best = np.repeat(np.maximum.reduceat(run.scores, begins), sizes)
    count = np.add.reduceat((run.scores == best).astype(np.int64), begins)
    return float((count[sizes > 1] > 1).mean()) if (sizes > 1).any() else 0.0


def _saturated(scores: FloatArray, space: ScoreSpace) -> float:
    if space == "unit":
        return float(((scores <= 0) | (scores >= 1)).mean())
    return float((np.abs(scores) >= FLAT_LOGIT).mean()) if space == "logit" else 0.0


def _gain(aligned: AlignedRuns, row: int) -> dict[str, tuple[float, float, float]]:
    """List − run in nDCG@10, where each orders the list's own candidates."""
    scored = aligned.rerank_ranks[row] > 0
    answered = np.bincount(aligned.query_index, weights=scored, minlength=len(aligned.queries)) > 0
    if answered.sum() < 2:
        return {}
    groups = number_by_appearance(aligned.groups)[0][answered]
    asked = [parse_measure("nDCG@10")]

    def value(ranks: IntArray) -> FloatArray:
        kept = np.where(scored & (ranks > 0), -ranks.astype(np.float64), np.nan)
        place = positions(kept, aligned.offsets)
        return np.asarray(measure.compute_measures(asked, aligned, place)[0][answered])

    list_values = value(aligned.rerank_ranks[row])
    gains = {}
    for s, name in enumerate(aligned.sources):
        difference = estimate_mean(list_values - value(aligned.ranks[s]), groups)
        gains[name] = (difference.mean, difference.low, difference.high)
    return gains
