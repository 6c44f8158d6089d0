"""Tuned rows: judged like the others, and by flips in which every one of them chooses anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import BETTER, WORSE, Answer, Comparison
from fusion_bench.stats.comparison_family import MIN_GAIN
from fusion_bench.stats.intervals import NOISE

#: Of the family.
ALPHA: Final = 0.05
#: Stored statistics are rounded to less than this.
STORED: Final = 1e-4


def adjust_for_choice(
    rows: Sequence[Comparison], nulls: Sequence[Sequence[float]]
) -> list[Comparison]:
    """Comparisons of tuned rows whose p and intervals know that parameters were chosen.

    Cross-fitted values share queries between folds, so that max-T alone finds a difference too
    often where there is none. Here max |t| over the rows is compared with its values in flips of
    signs in which each row chooses its parameters anew. The stricter of both tests counts.

    Args:
        rows: From a family of all rows; each with a standard error.
        nulls: Of each row its t in every flip; flips of the same number belong together.
    """
    known = [row for row in rows if row.standard_error > 0]
    if not known:
        return list(rows)
    sizes = np.abs([_statistic(row) for row in known])
    flipped = [null for row, null in zip(rows, nulls, strict=True) if row.standard_error > 0]
    maxima = np.append(np.abs(np.array(flipped)).max(axis=0), sizes.max())
    critical = float(np.sort(maxima)[-max(math.floor(ALPHA * len(maxima) + NOISE), 1)])
    return [_adjust(row, maxima, critical) if row.standard_error > 0 else row for row in rows]


def _statistic(row: Comparison) -> float:
    return row.difference / row.standard_error


def _adjust(row: Comparison, maxima: FloatArray, critical: float) -> Comparison:
    share = float((maxima >= abs(_statistic(row)) - STORED).mean())
    p = max(share, row.p_adjusted or 0.0)
    critical = max(critical, row.critical_value)
    width = critical * row.standard_error
    low, high = max(row.difference - width, -1.0), min(row.difference + width, 1.0)
    is_within = max(-low, high) < MIN_GAIN
    update = {
        "low": low,
        "high": high,
        "p_adjusted": p,
        "critical_value": critical,
        "answer": _weaken(row.answer, is_shown=p <= ALPHA, is_within=is_within),
    }
    return row.model_copy(update=update)


def _weaken(answer: Answer | None, *, is_shown: bool, is_within: bool) -> Answer | None:
    """What is left of the answer of max-T alone."""
    if answer in (*BETTER, *WORSE) and is_shown:
        side: Answer = "better" if answer in BETTER else "worse"
        return answer if is_within else side
    is_kept = answer == "identical" or (answer == "equivalent" and is_within)
    return answer if is_kept else "not shown"
