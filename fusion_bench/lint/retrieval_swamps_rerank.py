"""A retrieval term without bounds, which leaves the rerank score nothing to decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.blend import RetrievalBlend
from fusion_bench.fuse.comb_sum import CombSum
from fusion_bench.fuse.weighted_score import WeightedScore
from fusion_bench.fuse.weighted_sum import WeightedSum
from fusion_bench.lint._base import Fact, Problem, Rule, register_rule
from fusion_bench.lint._blend_facts import count_ranks, list_weights
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import RankedList, Witness, to_raw_score, without_cuts
from fusion_bench.normalize.linear import RawScores

#: Fusions whose score grows with the raw scores without bounds.
SUMS = (WeightedScore, WeightedSum, CombSum)
#: A source with this role scores by a similarity of at most 1.
BOUNDED = "semantic"


@register_rule
class RetrievalSwampsRerank(Rule):
    """``retrieval-swamps-rerank``: raw scores are blended with rerank scores in [0, 1]."""

    id: ClassVar[str] = "retrieval-swamps-rerank"
    facts: ClassVar[frozenset[Fact]] = frozenset({"roles"})

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """``retrieval: fused`` over raw scores of a source that is not bounded by its role."""
        blend, fusion = subject.retrieval_blend, subject.system.fusion
        if blend is None or blend.retrieval != "fused" or not isinstance(fusion, SUMS):
            return
        raw = [name for name in subject.sources if BOUNDED not in subject.roles_of(name)]
        if not isinstance(fusion.normalize, RawScores) or not raw or subject.dataset is None:
            return
        retrieval, rerank = list_weights(blend)
        if count_ranks(subject, blend) < 2 or not retrieval[0] or not rerank[0]:
            return
        lead = rerank[0] / retrieval[0]
        message = (
            f"the retrieval term adds up raw scores, without bounds for {', '.join(raw)}: a "
            f"lead of {lead:.3f} in it, which BM25 easily gives, outweighs every rerank score"
        )
        yield Problem(message, ("blend", "retrieval"), lambda: _build_witness(subject, blend))


def _build_witness(subject: Subject, blend: RetrievalBlend) -> Witness:
    """Of two documents the reranker prefers the second as much as it can, and the first wins."""
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
    return Witness(
        without_cuts(subject.system),
        f"every list scores d1 {first / total:.3f} and d2 {1 / total:.3f}; the reranker gives d1 "
        "the least score and d2 the greatest; d1 wins",
        lists,
        {document: to_raw_score(unit, subject.space) for document, unit in units.items()},
        above=(("d1", "d2"),),
        dataset=subject.dataset,
    )
