"""Min-max over sums of ranks, which makes the first candidate 1 and the last 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from fusion_bench.blend import RetrievalBlend
from fusion_bench.evaluation.report_records.lint_finding import Severity
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._blend_facts import list_weights
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, to_raw_score, without_cuts


@register_rule
class MinMaxOverRRF(Rule):
    """``min-max-over-rrf``: ``retrieval: fused_min_max`` over a sum of reciprocal ranks."""

    id: ClassVar[str] = "min-max-over-rrf"
    severity: ClassVar[Severity] = "note"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """Min-max over the candidates of a fusion of ranks."""
        blend = subject.retrieval_blend
        if blend is None or blend.retrieval != "fused_min_max" or subject.rank_fusion is None:
            return
        retrieval, _ = list_weights(blend)
        depths = [subject.depth_of(name) or blend.depth for name in subject.sources]
        if not retrieval[0] or min([blend.depth, *depths]) < 2:
            return
        first, second = _two_scores(subject)
        if first <= second:  # a bonus that grows with the rank, or a clamp
            return
        message = (
            "min-max makes the first candidate 1 and the last 0, however close their fused scores "
            f"are: {first:.4f} and {second:.4f} (ranks 1 and 2 in every list) become 1 and 0"
        )
        yield Problem(message, ("blend", "retrieval"), lambda: _build_witness(subject, blend))


def _two_scores(subject: Subject) -> tuple[float, float]:
    """The fused scores of documents that every list ranks first and second."""
    sums = subject.list_scores([dict.fromkeys(subject.sources, rank) for rank in (1, 2)])
    first, second = subject.system.fusion.display_scores(np.array(sums) / subject.divisor).tolist()
    return first, second


def _build_witness(subject: Subject, blend: RetrievalBlend) -> Witness:
    """Two candidates of nearly equal fused scores; the reranker likes both."""
    blend = blend.model_copy(update={"always_rerank": True})
    retrieval, rerank = list_weights(blend)
    is_order = subject.space == "order"
    second = 0.5 if is_order else 1.0
    scores = {"d1": float(retrieval[0] + rerank[0]), "d2": float(rerank[1] * second)}
    return Witness(
        without_cuts(subject.system.model_copy(update={"blend": blend})),
        "every list ranks d1 first and d2 second; their retrieval terms are 1 and 0",
        rank_lists({f"d{r}": dict.fromkeys(subject.sources, r) for r in (1, 2)}),
        {"d1": to_raw_score(1.0, subject.space), "d2": to_raw_score(second, subject.space)},
        scores=scores,
        dataset=subject.dataset,
    )
