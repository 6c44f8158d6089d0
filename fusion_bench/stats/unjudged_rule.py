"""When unjudged documents decide an answer: one rule for eval, try, tune and gate."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.intervals import MeanEstimate

#: ``complete``: an unlisted document is not relevant; ``pooled``: some document is judged not
#: relevant. Where none is: ``sparse`` = declared so; ``dropped zeros`` = declared as pooled;
#: ``undeclared``.
JudgmentKind: TypeAlias = Literal["pooled", "complete", "sparse", "dropped zeros", "undeclared"]
#: Above this share of unjudged documents in the top 10 a measure cannot be trusted.
MAX_UNJUDGED = 0.2
#: What an answer needs where nothing tells a shallow pool from a bad system.
CONDITION = "if unjudged documents are not relevant"

#: What an answer claims of the true difference: above 0, within ±m, or below 0.
Direction: TypeAlias = Literal[1, 0, -1]


def name_kind(declared: str | None, *, has_irrelevant: bool) -> JudgmentKind:
    """The kind of judgments by their declaration, and by whether a document is not relevant."""
    if declared == "complete" or has_irrelevant:
        return "complete" if declared == "complete" else "pooled"
    if declared is None:
        return "undeclared"
    return "sparse" if declared == "sparse" else "dropped zeros"


def unjudged_decide(
    direction: Direction,
    judged_only: MeanEstimate | None,
    filled_difference: float | None,
    m: float,
    *,
    is_pass: bool = False,
    pool_share: float | None = None,
) -> bool:
    """Whether a shown answer rests on unjudged documents.

    It does where the difference over judged documents only is shown to contradict it, or where
    the difference with unjudged documents filled contradicts it. What contradicts an answer:

    =============  ========================================  ==========================
    answer         interval over judged documents only       filled difference
    =============  ========================================  ==========================
    direction 1    wholly below 0                            below 0
    direction −1   wholly above 0                            above 0
    direction 0    wholly above m, or wholly below −m        not inside ±m
    a pass         wholly below −m                           not above −m
    =============  ========================================  ==========================

    Args:
        direction: 1 = better, −1 = worse, 0 = equivalent within ±m; not read for a pass.
        judged_only: The difference over judged documents only; None = not computed.
        filled_difference: The mean with unjudged documents filled; None = not computed, which
            contradicts nothing; NaN = no list has a judged document, which contradicts all.
        m: The tolerance, at least 0.
        is_pass: Whether the answer is that the candidate loses less than m.
        pool_share: Where a pool was judged and only its relevant documents are known: the larger
            share of unjudged documents in a top 10. Above :data:`MAX_UNJUDGED` they decide every
            answer, as neither difference can be computed. None = other judgments.
    """
    if pool_share is not None:
        return pool_share > MAX_UNJUDGED
    low, high = (judged_only.low, judged_only.high) if judged_only is not None else (-m, m)
    filled = filled_difference
    # The conditions on the filled difference are negated, so that NaN contradicts them all.
    if is_pass:
        return high < -m - NOISE or (filled is not None and not filled > -m)
    if direction == 0:
        return low > m or high < -m or (filled is not None and not abs(filled) < m)
    is_other_way = high < 0 if direction > 0 else low > 0
    return is_other_way or (filled is not None and not filled * direction >= -NOISE)
