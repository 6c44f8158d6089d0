"""What stands beside the answers of a collection: the first group, skewness, unseen losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.report.answer_texts import ComparedRow
from fusion_bench.report.page import Finding
from fusion_bench.stats.answers import SHOWN
from fusion_bench.stats.skew_rule import SkewedDifference
from fusion_bench.util.formatting import format_number, format_p_value, list_names, pluralize

#: With fewer queries, or groups, the page says which losses may not have been seen.
ENOUGH_SEEN = 300


def answer_findings(
    rows: Sequence[ComparedRow],
    first_group: Sequence[str],
    *,
    systems: int,
    queries: int,
    groups: int,
) -> Iterator[Finding]:
    """The first group of three systems or more, then what qualifies the answers.

    Args:
        rows: The comparisons on the primary measure.
        first_group: The systems not shown to be worse than any other; empty = not known.
        systems: So many were compared pair by pair, the baseline included.
        queries: Q.
        groups: G.
    """
    if first_group and systems > 2:
        yield Finding(describe_first_group(first_group, systems), key="first group")
    unit, count = ("query", queries) if groups == queries else ("group", groups)
    for row in rows:
        if row.skew is not None:
            text = _describe_skew(row, row.skew, pluralize(count, unit))
            yield Finding(text, "warning" if row.skew.is_against else "plain", "skew")
    if count < ENOUGH_SEEN and any(row.answer in SHOWN for row in rows):
        yield Finding(
            f"With {pluralize(count, unit)}, a loss on one {unit} in {max(2, round(count / 3)):,} "
            "may not have been seen yet.",
            key="unseen losses",
        )


def describe_first_group(names: Sequence[str], systems: int) -> str:
    """``First group: 4 systems, no difference shown: a, b, c and 1 more. …``."""
    if len(names) == systems:
        return f"First group: all {systems:,} systems, no difference shown, over all pairs."
    others = "Every other one is shown to be worse than some system, over all pairs."
    if len(names) == 1:
        return f"First group: {names[0]} alone. {others}"
    count = pluralize(len(names), "system")
    return f"First group: {count}, no difference shown: {list_names(names)}. {others}"


def _describe_skew(row: ComparedRow, skew: SkewedDifference, count: str) -> str:
    pair = f"{row.candidate} against {row.baseline}"
    skewness = f"skewness {skew.skewness:+.1f} over {count}"
    if not skew.is_against:
        return (
            f"{pair}: the differences are skewed ({skewness}): their median is "
            f"{format_number(skew.median, signed=True)}, p of the sign test "
            f"{format_p_value(skew.sign_p, alpha=0)}."
        )
    kind = "losses" if skew.skewness < 0 else "gains"
    bound = "" if skew.bound is None else f" ({format_number(skew.bound, signed=True)})"
    if not skew.is_withheld:
        ending = f"The bound that holds whatever was not seen carries the answer{bound}."
    else:
        claim = "better" if skew.skewness < 0 else "worse"
        ending = (
            f"The interval alone would say {claim}; a bound that holds whatever was not seen does "
            f"not{bound}, so it is not shown."
        )
    return f"{pair}: a few large {kind} stand against many small differences ({skewness}). {ending}"
