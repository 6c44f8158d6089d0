"""Rules about blends: retrieval or rerank scores that swamp the other, ranks that cannot move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench.checks.lint_rule import (
    Problem,
    RankedList,
    Subject,
    Witness,
    rank_lists,
    register_rule,
    reproduce,
    to_raw_score,
    without_blend,
)
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import RerankBlend, RetrievalBlend
from fusion_bench.methods.fuse.weighted_score import CombSum, WeightedScore, WeightedSum
from fusion_bench.methods.normalize.linear import RawScores

#: Lists of a witness end at this rank where the configuration sets no limit, so that fused scores
#: below the first hardly differ.
LAST_RANK = 500


def list_weights(blend: RetrievalBlend) -> tuple[FloatArray, FloatArray]:
    """(D,) each: the weights of retrieval and rerank score at fused ranks 1 to ``depth``."""
    return blend.weights_at(np.arange(1, blend.depth + 1))


def _term_bounds(blend: RetrievalBlend) -> tuple[FloatArray, FloatArray]:
    """(D,) each: least and greatest final score by fused rank, with 1/rank as retrieval term."""
    retrieval, rerank = list_weights(blend)
    low = retrieval / np.arange(1, blend.depth + 1)
    return low, low + rerank


def _count_documents(blend: RerankBlend, needed: int) -> int:
    """How many documents a witness needs, so that the blend does not skip the query."""
    return needed if blend.always_rerank else max(needed, blend.skip_limit + 1)


def _count_ranks(subject: Subject, blend: RerankBlend) -> int:
    """Fused ranks that lists which agree can fill; 0 where the blend skips lists so short."""
    depths = [subject.depth_of(name) or blend.depth for name in subject.sources]
    limit = min([blend.depth, *depths])
    return limit if limit >= _count_documents(blend, 1) else 0


def _ladder(
    subject: Subject, blend: RerankBlend, needed: int
) -> tuple[dict[str, RankedList], list[str]]:
    """Lists that all agree: one document far ahead, the others close together; and fused order."""
    count = _count_documents(blend, needed)
    last = min((subject.depth_of(name) or LAST_RANK for name in subject.sources), default=LAST_RANK)
    start = max(2, last - count + 2)
    ranks = [1, *range(start, start + count - 1)]
    width = len(str(len(ranks)))
    placed: RankedList = {f"d{i:0{width}}": (rank, 1 / rank) for i, rank in enumerate(ranks, 1)}
    lists = dict.fromkeys(subject.sources, placed)
    witness = Witness(without_blend(subject.system), "", lists, dataset=subject.dataset)
    outcome, _ = reproduce(witness)
    return lists, list(outcome.ranks)


def _rerank_by_place(
    order: Sequence[str], units: Sequence[float] | FloatArray, space: ScoreSpace
) -> Mapping[str, float]:
    """Raw rerank scores by fused rank: the documents beyond ``units`` get the last of them."""
    last = len(units) - 1
    return {
        document: to_raw_score(float(units[min(i, last)]), space)
        for i, document in enumerate(order)
    }


@register_rule("blend-not-monotone")
def check_blend_not_monotone(subject: Subject) -> Iterator[Problem]:
    """Equal rerank scores, and the lower fused rank wins.

    Ranks that change places where every candidate has the rerank score 1.
    """
    blend = subject.retrieval_blend
    if blend is None or subject.space == "order":  # no two scores of that space are equal
        return
    if blend.retrieval == "reciprocal_rank":
        yield from _check_reciprocal(subject, blend)
    else:
        yield from _check_steps(subject, blend)


def _check_reciprocal(subject: Subject, blend: RetrievalBlend) -> Iterator[Problem]:
    """Count the pairs of ranks that change places at rerank score 1, with the term 1/rank."""
    high = _term_bounds(blend)[1][: _count_ranks(subject, blend)]
    is_inverted = np.triu(high[:, None] < high[None, :], 1)
    if not is_inverted.any():
        return
    upper = int(np.flatnonzero(is_inverted.any(axis=1))[0])
    lower = int(np.where(is_inverted[upper], high, -np.inf).argmax())
    pairs = len(high) * (len(high) - 1) // 2
    message = (
        f"at rerank score 1, rank {lower + 1} scores {high[lower]:.3f} and rank {upper + 1} "
        f"{high[upper]:.3f}: {int(is_inverted.sum()):,} of {pairs:,} pairs of ranks change places "
        "although the reranker scores them alike"
    )
    yield Problem(
        message, ("blend",), lambda: _build_order_witness(subject, blend, upper + 1, lower + 1)
    )


def _check_steps(subject: Subject, blend: RetrievalBlend) -> Iterator[Problem]:
    """A share that falls from one rank to the next: there a high rerank score gains."""
    retrieval, rerank = list_weights(blend)
    steps = [r for r in range(2, _count_ranks(subject, blend)) if rerank[r] > rerank[r - 1]]
    if not steps:
        return
    upper = steps[0]
    scores = 0.5 * retrieval + rerank
    message = (
        f"the retrieval share falls from {retrieval[upper - 1]:g} at rank {upper} to "
        f"{retrieval[upper]:g} at rank {upper + 1}: with equal retrieval 0.5 and equal rerank "
        f"score 1, rank {upper + 1} scores {scores[upper]:.3f} and rank {upper} "
        f"{scores[upper - 1]:.3f}"
    )
    witness = _build_order_witness(subject, blend, upper, upper + 1)
    if not reproduce(witness)[1]:  # else the fusion spreads its scores too far apart
        yield Problem(message, ("blend",), lambda: witness)


def _build_order_witness(
    subject: Subject, blend: RetrievalBlend, upper: int, lower: int
) -> Witness:
    """Every candidate gets the greatest rerank score."""
    lists, order = _ladder(subject, blend, min(blend.depth, lower + 1))
    return subject.make_witness(
        f"all rerank scores are the greatest; {order[lower - 1]} of fused rank {lower} is put "
        f"above {order[upper - 1]} of fused rank {upper}",
        lists,
        _rerank_by_place(order, [1.0], subject.space),
        above=((order[lower - 1], order[upper - 1]),),
        system=_without_cuts(subject.system),
    )


@register_rule("min-max-over-rrf", severity="note")
def check_min_max_over_rrf(subject: Subject) -> Iterator[Problem]:
    """``retrieval: fused_min_max`` over a sum of reciprocal ranks.

    Min-max over the candidates of a fusion of ranks.
    """
    blend = subject.retrieval_blend
    if blend is None or blend.retrieval != "fused_min_max" or subject.rank_fusion is None:
        return
    retrieval, _ = list_weights(blend)
    depths = [subject.depth_of(name) or blend.depth for name in subject.sources]
    if not retrieval[0] or min([blend.depth, *depths]) < 2:
        return
    sums = subject.list_scores([dict.fromkeys(subject.sources, rank) for rank in (1, 2)])
    scores = subject.system.fusion.display_scores(np.array(sums) / subject.divisor)
    first, second = scores.tolist()
    if first <= second:  # a bonus that grows with the rank, or a clamp
        return
    message = (
        "min-max makes the first candidate 1 and the last 0, however close their fused scores "
        f"are: {first:.4f} and {second:.4f} (ranks 1 and 2 in every list) become 1 and 0"
    )
    yield Problem(message, ("blend", "retrieval"), lambda: _build_scale_witness(subject, blend))


def _build_scale_witness(subject: Subject, blend: RetrievalBlend) -> Witness:
    """Two candidates of nearly equal fused scores; the reranker likes both."""
    blend = blend.model_copy(update={"always_rerank": True})
    retrieval, rerank = list_weights(blend)
    is_order = subject.space == "order"
    second = 0.5 if is_order else 1.0
    scores = {"d1": float(retrieval[0] + rerank[0]), "d2": float(rerank[1] * second)}
    return subject.make_witness(
        "every list ranks d1 first and d2 second; their retrieval terms are 1 and 0",
        rank_lists({f"d{r}": dict.fromkeys(subject.sources, r) for r in (1, 2)}),
        {"d1": to_raw_score(1.0, subject.space), "d2": to_raw_score(second, subject.space)},
        scores=scores,
        system=_without_cuts(subject.system.model_copy(update={"blend": blend})),
    )


@register_rule("rank-immovable")
def check_rank_immovable(subject: Subject) -> Iterator[Problem]:
    """Some fused ranks stay as they are, whatever the reranker says.

    Ranks whose least score is above all lower ranks' greatest, with the term 1/rank.
    """
    blend = subject.retrieval_blend
    if blend is None or blend.retrieval != "reciprocal_rank" or blend.min_score is not None:
        return
    low, high = (bound[: _count_ranks(subject, blend)] for bound in _term_bounds(blend))
    frozen = 0
    while frozen < len(low) - 1 and low[frozen] > high[frozen + 1 :].max():
        frozen += 1
    if not frozen or not (high > low).any():
        return
    best = frozen + int(high[frozen:].argmax()) + 1
    ranks = "rank 1" if frozen == 1 else f"ranks 1 to {frozen}"
    message = (
        f"no rerank score moves {ranks}: rank {frozen} scores at least "
        f"{low[frozen - 1]:.3f}, every lower rank at most {high[best - 1]:.3f} (rank {best})"
    )
    yield Problem(
        message, ("blend",), lambda: _build_immovable_witness(subject, blend, frozen, best)
    )


def _build_immovable_witness(
    subject: Subject, blend: RetrievalBlend, frozen: int, best: int
) -> Witness:
    """The last frozen rank gets the least rerank score, all others the greatest."""
    units = np.ones(max(best, min(blend.depth, frozen + 2)))
    units[frozen - 1] = 0.0
    lists, order = _ladder(subject, blend, len(units))
    return subject.make_witness(
        f"{order[frozen - 1]} has fused rank {frozen} and the least rerank score, all others have "
        "the greatest; it keeps its rank",
        lists,
        _rerank_by_place(order, units, subject.space),
        above=tuple((order[frozen - 1], other) for other in order[frozen:]),
        system=_without_cuts(subject.system),
    )


#: A retrieval term of at most this much is on another scale than rerank scores.
GREATEST_TERM = 0.5
#: A rerank lead of at most this much, on the unit scale, outweighs any lead in retrieval.
GREATEST_LEAD = 0.5


@register_rule("rerank-swamps-retrieval")
def check_rerank_swamps_retrieval(subject: Subject) -> Iterator[Problem]:
    """A raw fused score is blended with rerank scores in [0, 1].

    ``retrieval: fused`` over ranks, whose greatest sum is far below 1.
    """
    blend = subject.retrieval_blend
    if blend is None or blend.retrieval != "fused" or subject.rank_fusion is None:
        return
    retrieval, rerank = list_weights(blend)
    if _count_ranks(subject, blend) < 2 or not retrieval[0] or not rerank[1]:
        return
    top = subject.greatest_score
    lead = retrieval[0] * top / rerank[1]
    if not (top <= GREATEST_TERM and lead <= GREATEST_LEAD):
        return
    share = retrieval[0] * top / (retrieval[0] * top + rerank[0])
    message = (
        f"the retrieval term is the raw fused score, at most {top:.4f}: its weight of "
        f"{retrieval[0]:.0%} at rank 1 makes at most {share:.0%} of the score, and a rerank "
        f"lead of {lead:.3f} outweighs every lead in retrieval"
    )
    yield Problem(
        message,
        ("blend", "retrieval"),
        lambda: _build_rerank_witness(subject, blend, float(lead)),
    )


def _build_rerank_witness(subject: Subject, blend: RetrievalBlend, lead: float) -> Witness:
    """The best document of all lists against the second of one, which leads in rerank score."""
    best = dict.fromkeys(subject.sources, 1)
    ranks = {"d1": best, "d2": {subject.lightest: 2}}
    units = {"d1": 0.0, "d2": min(1.0, lead)}
    if not blend.always_rerank or subject.space == "unbounded":
        count = 1 if blend.always_rerank else blend.skip_limit
        more = {f"e{i:02}": {subject.lightest: 2 + i} for i in range(1, count + 1)}
        ranks |= more
        units |= dict.fromkeys(more, 1.0)  # the upper end of an unbounded scale
    return subject.make_witness(
        f"every list ranks d1 first, one ranks d2 second; d2 leads by {lead:.3f} in rerank score "
        "and wins",
        rank_lists(ranks),
        {document: to_raw_score(unit, subject.space) for document, unit in units.items()},
        above=(("d2", "d1"),),
        system=_without_cuts(subject.system),
    )


#: Fusions whose score grows with the raw scores without bounds.
SUMS = (WeightedScore, WeightedSum, CombSum)
#: A source with this role scores by a similarity of at most 1.
BOUNDED = "semantic"


@register_rule("retrieval-swamps-rerank", facts={"roles"})
def check_retrieval_swamps_rerank(subject: Subject) -> Iterator[Problem]:
    """Raw scores are blended with rerank scores in [0, 1].

    ``retrieval: fused`` over raw scores of a source that is not bounded by its role.
    """
    blend, fusion = subject.retrieval_blend, subject.system.fusion
    if blend is None or blend.retrieval != "fused" or not isinstance(fusion, SUMS):
        return
    raw = [name for name in subject.sources if BOUNDED not in subject.roles_of(name)]
    if not isinstance(fusion.normalize, RawScores) or not raw or subject.dataset is None:
        return
    retrieval, rerank = list_weights(blend)
    if _count_ranks(subject, blend) < 2 or not retrieval[0] or not rerank[0]:
        return
    lead = rerank[0] / retrieval[0]
    message = (
        f"the retrieval term adds up raw scores, without bounds for {', '.join(raw)}: a "
        f"lead of {lead:.3f} in it, which BM25 easily gives, outweighs every rerank score"
    )
    yield Problem(message, ("blend", "retrieval"), lambda: _build_retrieval_witness(subject, blend))


def _build_retrieval_witness(subject: Subject, blend: RetrievalBlend) -> Witness:
    """Build two documents: the first wins, though the reranker prefers the second most."""
    retrieval, rerank = list_weights(blend)
    first = float((retrieval[1] + rerank[1]) / retrieval[0]) + 0.1
    is_sum = isinstance(subject.system.fusion, WeightedSum)
    total = sum((subject.weights or {}).values()) if is_sum else 1.0  # so that d2's score is 1
    ranked: dict[str, tuple[int, float]] = {"d1": (1, first / total), "d2": (2, 1 / total)}
    units = {"d1": 0.0, "d2": 1.0}
    if not blend.always_rerank:
        more = {f"e{i:02}": (2 + i, 0.0) for i in range(1, blend.skip_limit + 1)}
        ranked |= more
        units |= dict.fromkeys(more, 0.0)
    lists: dict[str, RankedList] = dict.fromkeys(subject.sources, ranked)
    return subject.make_witness(
        f"every list scores d1 {first / total:.3f} and d2 {1 / total:.3f}; the reranker gives d1 "
        "the least score and d2 the greatest; d1 wins",
        lists,
        {document: to_raw_score(unit, subject.space) for document, unit in units.items()},
        above=(("d1", "d2"),),
        system=_without_cuts(subject.system),
    )


def _without_cuts(system: System) -> System:
    """The fusion and the blend, without a threshold or cut of the final list."""
    blend = system.blend
    if isinstance(blend, RerankBlend):
        blend = blend.model_copy(update={"min_score": None})
    return system.model_copy(update={"blend": blend, "min_relevance": None, "top_k": None})
