"""A ``min_relevance`` that hardly any fused score can reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from fusion_bench.blend.none import NoBlend
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists

#: A threshold that keeps documents down to this rank in all lists cuts no more than a final list.
DEEP_ENOUGH = 10
#: The deepest rank that is looked at.
DEEPEST = 1000


@register_rule
class MinRelevanceDrops(Rule):
    """``min-relevance-drops``: the threshold lies above what ranks can score."""

    id: ClassVar[str] = "min-relevance-drops"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """Documents that one list ranks first, or all lists in the top 10, and that are dropped."""
        limit, fusion = subject.system.min_relevance, subject.rank_fusion
        if limit is None or fusion is None or not isinstance(subject.system.blend, NoBlend):
            return
        single = subject.score_at({subject.heaviest: 1}) / subject.divisor
        kept = _count_kept_ranks(subject, limit)
        if kept >= DEEP_ENOUGH and single >= limit:
            return
        message = f"min_relevance {limit:g} drops most documents: " + (
            f"one that every list ranks first scores {subject.greatest_score:.4f}"
            if not kept
            else _describe_kept(subject, single, limit, kept)
        )
        location = ("min_relevance",)
        yield Problem(message, location, lambda: _build_witness(subject, single, limit, kept))


def _count_kept_ranks(subject: Subject, limit: float) -> int:
    """Down to which rank a document stays that every list ranks alike."""
    ranks = np.tile(np.arange(1, DEEPEST + 1), (len(subject.sources), 1))
    is_kept = subject.scores_at(ranks) / subject.divisor >= limit
    return int(is_kept.argmin()) if not is_kept.all() else DEEPEST


def _describe_kept(subject: Subject, single: float, limit: float, kept: int) -> str:
    top = f"scores go up to {subject.greatest_score:.4f}"
    common = f"one that all lists rank alike stays down to rank {kept}"
    if single >= limit:
        return f"{top}; {common}"
    return f"{top}; one that a single list returns scores at most {single:.4f}; {common}"


def _build_witness(subject: Subject, single: float, limit: float, kept: int) -> Witness:
    """The first document that all lists rank alike and lose, and one of a single list."""
    ranks = {"d1": dict.fromkeys(subject.sources, kept + 1)}
    claim = f"every list ranks d1 {kept + 1}; it is dropped"
    if single < limit and kept and len(subject.sources) > 1:
        ranks["d2"] = {subject.heaviest: 1}
        claim += f", and so is d2, which {subject.heaviest} alone ranks first"
    return Witness(
        subject.system,
        claim,
        rank_lists(ranks),
        dropped=tuple(ranks),
        dataset=subject.dataset,
    )
