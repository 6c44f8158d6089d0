"""What a comparison with the baseline shows, in one word."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from fusion_bench.stats.max_t import RowResult

Answer: TypeAlias = Literal[
    "better",
    "worse",
    "better, by less than min_gain",
    "worse, by less than min_gain",
    "equivalent",
    "not shown",
    "not shown (within simulation error)",
    "identical",
    "unjudged decide",
]

#: A row with fewer changed queries or groups has no interval that covers as stated.
MIN_CHANGED = 10
MIN_GROUPS = 20
BETTER: Final[tuple[Answer, ...]] = ("better", "better, by less than min_gain")
WORSE: Final[tuple[Answer, ...]] = ("worse", "worse, by less than min_gain")
#: Answers that claim something about the true difference.
SHOWN: Final[tuple[Answer, ...]] = (*BETTER, *WORSE, "equivalent")
NOT_SHOWN: Final[tuple[Answer, ...]] = ("not shown", "not shown (within simulation error)")


def has_few_changes(changed: int, groups: int) -> bool:
    """Whether the interval may not cover as stated: too few changed queries or groups."""
    return changed < MIN_CHANGED or groups < MIN_GROUPS


def decide_answer(row: RowResult, *, changed: int, alpha: float = 0.05) -> Answer:
    """The answer that the flips of a family support.

    Args:
        row: What they say about the comparison.
        changed: Queries that differ between the two systems.
        alpha: Level of the test.

    Returns:
        ``identical``: no query differs. ``better`` and ``worse``: p ≤ ``alpha``; ``by less than
        min_gain``: and the whole interval lies inside ±m. ``equivalent``: not significant, and the
        whole interval lies inside ±m. Both need 10 changed queries and 20 groups. ``not shown``:
        else; ``(within simulation error)``: more draws could decide.
    """
    if changed == 0:
        return "identical"
    is_within = row.is_within and not has_few_changes(changed, row.estimate.groups)
    if row.decision == "open":
        return "not shown (within simulation error)"
    if row.p <= alpha:
        is_small = is_within and row.within_decision == "clear"
        if row.estimate.mean > 0:
            return "better, by less than min_gain" if is_small else "better"
        return "worse, by less than min_gain" if is_small else "worse"
    if row.within_decision == "open":
        return "not shown (within simulation error)"
    return "equivalent" if is_within else "not shown"
