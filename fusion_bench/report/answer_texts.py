"""How answers are written on every page: p-values, intervals, what stands beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from fusion_bench.evaluation.report_records import ComparisonResult
from fusion_bench.report.page import Column, Finding, Tone
from fusion_bench.stats.comparison import (
    BETTER,
    MIN_CHANGED,
    MIN_GROUPS,
    SHOWN,
    WORSE,
    Comparison,
    SkewedDifference,
)
from fusion_bench.stats.corrections import Correction
from fusion_bench.util.formatting import (
    UNADJUSTED,
    format_coverage,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    list_names,
    pluralize,
)

#: Stands behind an interval that may cover less than it says.
FEW_CHANGES = " (few)"
SIMULATION_ERROR = "not shown (within simulation error)"


ComparedRow: TypeAlias = Comparison | ComparisonResult

#: Of any record that has a difference.
DIFFERENCE: Column[Any] = Column(
    "difference", lambda row: format_number(row.difference, signed=True)
)
#: Of any record that counts the queries won, tied and lost.
COUNTS: Column[Any] = Column(
    "w/t/l", lambda row: f"{row.wins:,}/{row.ties:,}/{row.losses:,}", is_optional=True
)


def interval_column(alpha: float, mark: str = "") -> Column[Any]:
    """The interval of a difference: of any record that has its ends.

    Args:
        alpha: 1 − coverage, which the header names.
        mark: Stands behind the header.
    """
    return Column(f"{format_coverage(alpha)} interval{mark}", format_compared_interval)


def first_group_column(names: Collection[str], name: Callable[[Any], str]) -> Column[Any]:
    """Which systems are in the first group.

    Args:
        names: Its systems.
        name: The name of a row's system, empty where the row is of another measure.
    """
    return Column("first group", lambda row: "yes" if name(row) in names else "", is_text=True)


def p_column(alpha: float, header: str = "p") -> Column[Any]:
    """The adjusted p of a :data:`ComparedRow`, else the plain one, which cell or header marks."""
    if header.endswith(UNADJUSTED):
        return Column(header, lambda row: format_p_value(row.p, alpha=alpha))
    return Column(header, lambda row: format_adjusted_p(row, alpha))


def format_compared_interval(row: Any) -> str:  # noqa: ANN401 - of any record that has its ends
    """The interval; marked where it may cover less than it says."""
    text = format_interval(row.low, row.high, signed=True)
    has_few = getattr(row, "few_changes", False) and text != "n/a"
    return f"{text}{FEW_CHANGES}" if has_few else text


#: The answer where unjudged documents decide; keys and JSON have the longer words.
JUDGE_FIRST: Final = "judge first"


def name_verdict(verdict: str) -> str:
    """A verdict or a status as pages write it; keys and JSON keep their word."""
    return JUDGE_FIRST if verdict == "unjudged decide" else verdict


def format_answer(answer: str | None, min_gain: float, *, alpha: float = 0.05) -> str:
    """``better, by less than .005``, ``equivalent within .005``, ``not shown (p = .05 …)``."""
    if answer is None:
        return ""
    if answer == "equivalent":
        return f"equivalent within {format_margin(min_gain)}"
    if answer == SIMULATION_ERROR:
        return f"not shown (p = {format_margin(alpha)} within simulation error)"
    return name_verdict(answer).replace("min_gain", format_margin(min_gain))


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
        return f"Adjusted p and {coverage} intervals of differences hold together for {count}."
    if correction == "holm":
        return (
            f"Adjusted p: sign-flip test with Holm's correction for {count}; intervals are not "
            "adjusted."
        )
    return "p: sign-flip test. Neither p nor intervals are adjusted for the number of comparisons."


def describe_few_changes(rows: Iterable[ComparedRow], coverage: str) -> str:
    """What the mark of few changes means; empty where no row has it."""
    if not any(row.few_changes for row in rows):
        return ""
    return (
        f"{FEW_CHANGES.strip()} = fewer than {MIN_CHANGED} changed queries or {MIN_GROUPS} groups: "
        f"not a {coverage} interval."
    )


#: With fewer queries, or groups, pages say which losses may not have been seen.
ENOUGH_SEEN = 300
#: With probability .05 no unit has what this number ÷ units of all queries have.
RULE_OF_THREE = 3


def unseen_losses(units: int) -> str | None:
    """What no rule can see among so few units, in a sentence; None where there are enough.

    Args:
        units: The groups that decide, or the queries where there are no groups.
    """
    if units >= ENOUGH_SEEN:
        return None
    share = format_percent(min(1.0, RULE_OF_THREE / max(1, units)))
    return (
        f"Among {pluralize(units, 'unit')}, a loss of 1 that up to {share} of all queries have may "
        "not show at all."
    )


def answer_findings(
    rows: Sequence[ComparedRow], first_group: Sequence[str], systems: int, queries: int, groups: int
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
