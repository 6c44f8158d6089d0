"""A retrieval term so small that the rerank score decides, whatever the weights say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.blend import RetrievalBlend
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._blend_facts import count_ranks, list_weights
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, to_raw_score, without_cuts

#: A retrieval term of at most this much is on another scale than rerank scores.
GREATEST_TERM = 0.5
#: A rerank lead of at most this much, on the unit scale, outweighs any lead in retrieval.
GREATEST_LEAD = 0.5


@register_rule
class RerankSwampsRetrieval(Rule):
    """``rerank-swamps-retrieval``: a raw fused score is blended with rerank scores in [0, 1]."""

    id: ClassVar[str] = "rerank-swamps-retrieval"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """``retrieval: fused`` over ranks, whose greatest sum is far below 1."""
        blend = subject.retrieval_blend
        if blend is None or blend.retrieval != "fused" or subject.rank_fusion is None:
            return
        retrieval, rerank = list_weights(blend)
        if count_ranks(subject, blend) < 2 or not retrieval[0] or not rerank[1]:
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
            message, ("blend", "retrieval"), lambda: _build_witness(subject, blend, float(lead))
        )


def _build_witness(subject: Subject, blend: RetrievalBlend, lead: float) -> Witness:
    """The best document of all lists against the second of one, which leads in rerank score."""
    best = dict.fromkeys(subject.sources, 1)
    ranks = {"d1": best, "d2": {subject.lightest: 2}}
    units = {"d1": 0.0, "d2": min(1.0, lead)}
    if not blend.always_rerank or subject.space == "unbounded":
        count = 1 if blend.always_rerank else blend.skip_limit
        more = {f"e{i:02}": {subject.lightest: 2 + i} for i in range(1, count + 1)}
        ranks |= more
        units |= dict.fromkeys(more, 1.0)  # the upper end of an unbounded scale
    return Witness(
        without_cuts(subject.system),
        f"every list ranks d1 first, one ranks d2 second; d2 leads by {lead:.3f} in rerank score "
        "and wins",
        rank_lists(ranks),
        {document: to_raw_score(unit, subject.space) for document, unit in units.items()},
        above=(("d2", "d1"),),
        dataset=subject.dataset,
    )
