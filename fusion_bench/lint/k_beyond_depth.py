"""A k so large that ranks hardly count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.evaluation.report_records.lint_finding import Severity
from fusion_bench.fuse.rrf import RRF
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, without_blend

#: Where the last rank counts at least this part of the first, ranks hardly count.
LEAST_RATIO = 0.9
#: The length of lists that the configuration does not cut.
USUAL_DEPTH = 100


@register_rule
class KBeyondDepth(Rule):
    """``k-beyond-depth``: with k far beyond the depth, lists are votes."""

    id: ClassVar[str] = "k-beyond-depth"
    severity: ClassVar[Severity] = "note"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """A last rank that counts nearly as much as the first."""
        fusion = subject.rank_fusion
        if not isinstance(fusion, RRF) or len(subject.sources) < 2:
            return
        depth = subject.depth or USUAL_DEPTH
        pair = _heaviest_pair(subject)
        first, last = (subject.score_at({pair[0]: rank}) for rank in (1, depth))
        ratio, both = last / first, subject.score_at(dict.fromkeys(pair, depth))
        if depth < 2 or ratio < LEAST_RATIO or both <= first:
            return
        k = min(fusion.k.values()) if isinstance(fusion.k, dict) else fusion.k
        origin = "" if subject.depth else f" (the configuration sets no depth: {depth} is assumed)"
        message = (
            f"k {k:g} is far beyond the depth {depth}{origin}: rank {depth} counts "
            f"{ratio:.1%} of rank 1, so a document that two lists rank last beats one that a "
            "single list ranks first; lists count as votes"
        )
        yield Problem(message, ("fusion", "k"), lambda: _build_witness(subject, pair, depth))


def _heaviest_pair(subject: Subject) -> list[str]:
    weights = subject.weights or {}
    return sorted(weights, key=lambda name: -weights[name])[:2]


def _build_witness(subject: Subject, pair: list[str], depth: int) -> Witness:
    """The last document of two lists against the first of one."""
    last = {name: min(depth, subject.depth_of(name) or depth) for name in pair}
    return Witness(
        without_blend(subject.system),
        f"{pair[0]} alone ranks d1 first; {' and '.join(pair)} rank d2 {depth}; d2 wins",
        rank_lists({"d1": {pair[0]: 1}, "d2": last}),
        above=(("d2", "d1"),),
        dataset=subject.dataset,
    )
