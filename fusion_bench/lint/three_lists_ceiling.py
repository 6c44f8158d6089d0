"""``three_lists`` with weights that sum to less than 3: scores stay far below 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.evaluation.report_records.lint_finding import Severity
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, without_blend


@register_rule
class ThreeListsCeiling(Rule):
    """``three-lists-ceiling``: the scale of ``three_lists`` is never used up."""

    id: ClassVar[str] = "three-lists-ceiling"
    severity: ClassVar[Severity] = "note"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """A greatest score below 1."""
        fusion = subject.rank_fusion
        if fusion is None or fusion.normalize != "three_lists":
            return
        total, top = sum((subject.weights or {}).values()), subject.greatest_score
        if not top < 1 - 1e-9:
            return
        message = (
            f"three_lists divides by 3/(k+1), for three lists of weight 1, and the weights sum to "
            f"{total:g}: no score exceeds {top:.3f}, so a threshold on [0, 1] means less than it "
            "says"
        )
        yield Problem(message, ("fusion", "normalize"), lambda: _build_witness(subject, top))


def _build_witness(subject: Subject, top: float) -> Witness:
    """A document that every list ranks first."""
    return Witness(
        without_blend(subject.system),
        f"every list ranks d1 first; it scores {top:.3f}",
        rank_lists({"d1": dict.fromkeys(subject.sources, 1)}),
        scores={"d1": top},
        dataset=subject.dataset,
    )
