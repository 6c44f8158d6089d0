"""How answers, adjusted p-values and their intervals are written on every page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.report.page import Tone
from fusion_bench.stats.answers import BETTER, MIN_CHANGED, MIN_GROUPS, WORSE
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.corrections import Correction
from fusion_bench.util.formatting import format_interval, format_p_value, pluralize

#: Stands beside an interval that may cover less than it says.
FEW_CHANGES = "‡"
SIMULATION_ERROR = "not shown (within simulation error)"


ComparedRow: TypeAlias = Comparison | ComparisonResult


def format_answer(answer: str | None, min_gain: float, *, alpha: float = 0.05) -> str:
    """``better, by less than .005``, ``equivalent within .005``, ``not shown (p = .05 …)``."""
    if answer is None:
        return ""
    if answer == "equivalent":
        return f"equivalent within {format_margin(min_gain)}"
    if answer == SIMULATION_ERROR:
        return f"not shown (p = {format_margin(alpha)} within simulation error)"
    return answer.replace("min_gain", format_margin(min_gain))


def format_margin(value: float) -> str:
    """A level or the least gain without its leading zero: ``.005``."""
    text = f"{value:g}"
    return text[1:] if text.startswith("0.") else text


def find_answer_tone(answer: str | None) -> Tone:
    """The tone of a row with this answer."""
    if answer in BETTER:
        return "better"
    if answer in WORSE:
        return "worse"
    return "warning" if answer == "unjudged decide" else "plain"


def format_compared_interval(row: ComparedRow) -> str:
    """The interval; ‡ where it may cover less than it says."""
    text = format_interval(row.low, row.high, signed=True)
    return f"{text}{FEW_CHANGES}" if row.few_changes and text != "n/a" else text


def format_adjusted_p(row: ComparedRow, alpha: float) -> str:
    """The adjusted p, ``≤.0001`` where the draws give no less; else the plain one with its mark."""
    if row.p_adjusted is None:
        return format_p_value(row.p, alpha=alpha, adjusted=False)
    if row.p_floor and row.p_adjusted <= alpha:
        return f"≤{_round_up(row.p_adjusted)}"
    return format_p_value(row.p_adjusted, alpha=alpha)


def _round_up(p: float) -> str:
    """Two significant digits, never below p."""
    decimals = 1 - math.floor(math.log10(p))
    text = f"{math.ceil(p * 10**decimals) / 10**decimals:.{decimals}f}"
    return text.removeprefix("0").rstrip("0")


def describe_correction(correction: Correction, comparisons: int, coverage: str) -> str:
    """What p and intervals account for, in a sentence."""
    count = pluralize(comparisons, "comparison")
    if correction == "max_t":
        return (
            f"Adjusted p and {coverage} intervals of differences hold together for {count} "
            "(max-T, sign flips)."
        )
    if correction == "holm":
        return (
            f"Adjusted p: sign-flip test with Holm's correction for {count}; intervals are not "
            "adjusted."
        )
    return "p: sign-flip test. Neither p nor intervals are adjusted for the number of comparisons."


def describe_few_changes(rows: Iterable[ComparedRow], coverage: str) -> str:
    """The legend of ‡; empty where no row has it."""
    if not any(row.few_changes for row in rows):
        return ""
    return (
        f"{FEW_CHANGES} Fewer than {MIN_CHANGED} changed queries or {MIN_GROUPS} groups: not a "
        f"{coverage} interval."
    )
