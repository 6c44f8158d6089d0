"""A rank that no rerank score can change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from fusion_bench.blend import RetrievalBlend
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._blend_facts import count_ranks, ladder, rerank_by_place, term_bounds
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, without_cuts


@register_rule
class RankImmovable(Rule):
    """``rank-immovable``: some fused ranks stay as they are, whatever the reranker says."""

    id: ClassVar[str] = "rank-immovable"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """Ranks whose least score is above all lower ranks' greatest, with the term 1/rank."""
        blend = subject.retrieval_blend
        if blend is None or blend.retrieval != "reciprocal_rank" or blend.min_score is not None:
            return
        low, high = (bound[: count_ranks(subject, blend)] for bound in term_bounds(blend))
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
        yield Problem(message, ("blend",), lambda: _build_witness(subject, blend, frozen, best))


def _build_witness(subject: Subject, blend: RetrievalBlend, frozen: int, best: int) -> Witness:
    """The last frozen rank gets the least rerank score, all others the greatest."""
    units = np.ones(max(best, min(blend.depth, frozen + 2)))
    units[frozen - 1] = 0.0
    lists, order = ladder(subject, blend, len(units))
    return Witness(
        without_cuts(subject.system),
        f"{order[frozen - 1]} has fused rank {frozen} and the least rerank score, all others have "
        "the greatest; it keeps its rank",
        lists,
        rerank_by_place(order, units, subject.space),
        above=tuple((order[frozen - 1], other) for other in order[frozen:]),
        dataset=subject.dataset,
    )
