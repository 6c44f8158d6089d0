"""A blend that puts a lower rank above a higher one although the reranker likes both alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from fusion_bench.blend import RetrievalBlend
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._blend_facts import (
    count_ranks,
    ladder,
    list_weights,
    rerank_by_place,
    term_bounds,
)
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, reproduce, without_cuts


@register_rule
class BlendNotMonotone(Rule):
    """``blend-not-monotone``: equal rerank scores, and the lower fused rank wins."""

    id: ClassVar[str] = "blend-not-monotone"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """Ranks that change places where every candidate has the rerank score 1."""
        blend = subject.retrieval_blend
        if blend is None or subject.space == "order":  # no two scores of that space are equal
            return
        if blend.retrieval == "reciprocal_rank":
            yield from _check_reciprocal(subject, blend)
        else:
            yield from _check_steps(subject, blend)


def _check_reciprocal(subject: Subject, blend: RetrievalBlend) -> Iterator[Problem]:
    """Count the pairs of ranks that change places at rerank score 1, with the term 1/rank."""
    high = term_bounds(blend)[1][: count_ranks(subject, blend)]
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
    yield Problem(message, ("blend",), lambda: _build_witness(subject, blend, upper + 1, lower + 1))


def _check_steps(subject: Subject, blend: RetrievalBlend) -> Iterator[Problem]:
    """A share that falls from one rank to the next: there a high rerank score gains."""
    retrieval, rerank = list_weights(blend)
    steps = [r for r in range(2, count_ranks(subject, blend)) if rerank[r] > rerank[r - 1]]
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
    witness = _build_witness(subject, blend, upper, upper + 1)
    if not reproduce(witness)[1]:  # else the fusion spreads its scores too far apart
        yield Problem(message, ("blend",), lambda: witness)


def _build_witness(subject: Subject, blend: RetrievalBlend, upper: int, lower: int) -> Witness:
    """Every candidate gets the greatest rerank score."""
    lists, order = ladder(subject, blend, min(blend.depth, lower + 1))
    return Witness(
        without_cuts(subject.system),
        f"all rerank scores are the greatest; {order[lower - 1]} of fused rank {lower} is put "
        f"above {order[upper - 1]} of fused rank {upper}",
        lists,
        rerank_by_place(order, [1.0], subject.space),
        above=((order[lower - 1], order[upper - 1]),),
        dataset=subject.dataset,
    )
