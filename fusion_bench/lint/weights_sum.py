"""Weights whose sum the scale of the scores hangs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.config.query_types import SUM_TOLERANCE
from fusion_bench.fuse import RankTermFusion
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, without_blend

#: Lists of weight 1 that ``three_lists`` divides by.
THREE = 3


@register_rule
class WeightsSum(Rule):
    """``weights-sum``: the weights do not sum to what the formula takes them to."""

    id: ClassVar[str] = "weights-sum"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """Sums of weights by type that differ, and too much weight for ``three_lists``."""
        if subject.rank_fusion is None:
            return
        if subject.is_fallback:
            yield from _check_types(subject)
        yield from _check_three_lists(subject, subject.rank_fusion)


def _check_types(subject: Subject) -> Iterator[Problem]:
    """The sum of weights of each type, where scores grow with it."""
    sums: dict[str, float] = {}
    for name in subject.whole.query_classes or ():
        part = Subject(subject.whole.of_class(name), subject.whole, name, subject.dataset)
        if part.rank_fusion is None or part.rank_fusion.normalize == "max_possible":
            return
        sums[name] = sum((part.weights or {}).values())
    odd = [name for name, total in sums.items() if abs(total - 1) > SUM_TOLERANCE + 1e-9]
    if not odd or max(sums.values()) - min(sums.values()) <= SUM_TOLERANCE + 1e-9:
        return
    listed = ", ".join(f"{name} {total:g}" for name, total in sums.items())
    message = (
        f"the weights sum to {listed}: fused scores grow with the sum, so those of different "
        f"{subject.class_title}s are not on one scale; make each sum 1"
    )
    location = (subject.whole.class_field,)
    yield Problem(message, location, lambda: _build_type_witness(subject, sums), of_whole=True)


def _build_type_witness(subject: Subject, sums: dict[str, float]) -> Witness:
    """The first document of every list, for the type of the greatest sum."""
    name = max(sums, key=lambda query_type: sums[query_type])
    part = Subject(subject.whole.of_class(name), subject.whole, name, subject.dataset)
    field = subject.class_field
    least = min(sums.values()) / sums[name]
    return Witness(
        without_blend(part.system),
        f"every list ranks d1 first; it scores {part.greatest_score:.4f} for {field} {name}, and "
        f"only {least:.0%} of that for the {field} of the least sum",
        rank_lists({"d1": dict.fromkeys(part.sources, 1)}),
        scores={"d1": part.greatest_score},
        dataset=subject.dataset,
    )


def _check_three_lists(subject: Subject, fusion: RankTermFusion) -> Iterator[Problem]:
    """Sums above 1 are clamped, and then equal."""
    total = sum((subject.weights or {}).values())
    if fusion.normalize != "three_lists" or total <= THREE:
        return
    first, second = (
        subject.score_at(dict.fromkeys(subject.sources, rank)) / subject.divisor for rank in (1, 2)
    )
    if second <= 1:
        return
    message = (
        f"three_lists divides by 3/(k+1), for three lists of weight 1, and the weights sum to "
        f"{total:g}: documents that every list ranks first and second would score {first:.3f} and "
        f"{second:.3f} and are both shown as 1, which a blend or a threshold then reads"
    )
    yield Problem(message, ("fusion", "weights"), lambda: _build_clamp_witness(subject))


def _build_clamp_witness(subject: Subject) -> Witness:
    """The first two documents of every list."""
    return Witness(
        without_blend(subject.system),
        "every list ranks d1 first and d2 second; both score 1",
        rank_lists({f"d{r}": dict.fromkeys(subject.sources, r) for r in (1, 2)}),
        scores={"d1": 1.0, "d2": 1.0},
        dataset=subject.dataset,
    )
