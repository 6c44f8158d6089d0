"""How answers are written on every page: p-values, intervals, what stands beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fusion_bench.evaluation.recommendation import Preference
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection, ComparisonResult
from fusion_bench.report.page import Column, Finding, Tone
from fusion_bench.stats.comparison import BETTER, SHOWN, WORSE, Comparison
from fusion_bench.stats.intervals import ALPHA
from fusion_bench.stats.thresholds import Share
from fusion_bench.util.formatting import (
    NO_INTERVAL,
    format_coverage,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    list_names,
    pluralize,
)

if TYPE_CHECKING:
    from fusion_bench.evaluation.thresholds import ChosenSignal, SignalComparison

ComparedRow: TypeAlias = Comparison | ComparisonResult

#: Of any record that has a difference.
DIFFERENCE: Column[Any] = Column(
    "difference", lambda row: format_number(row.difference, signed=True)
)
#: Of any record that counts the queries won, tied and lost.
COUNTS: Column[Any] = Column(
    "w/t/l", lambda row: f"{row.wins:,}/{row.ties:,}/{row.losses:,}", is_optional=True
)


def interval_column(alpha: float) -> Column[Any]:
    """The interval of a difference: of any record that has its ends.

    Args:
        alpha: 1 − coverage, which the header names.
    """
    return Column(f"{format_coverage(alpha)} interval", format_compared_interval)


def compared_column(alpha: float) -> Column[Any]:
    """The column of differences from the baseline, each with its interval.

    Args:
        alpha: 1 − coverage, which the header names.
    """
    header = f"difference [{format_coverage(alpha)} interval]"
    return Column(
        header, lambda row: f"{DIFFERENCE.cell(row)} {format_compared_interval(row)}".rstrip()
    )


def p_column(alpha: float) -> Column[Any]:
    """P of any record that has one."""
    return Column("p", lambda row: format_p_value(row.p, alpha=alpha))


def format_compared_interval(row: Any) -> str:  # noqa: ANN401 - of any record that has its ends
    """The interval of a difference; ``n/a`` if there is none; empty for identical systems."""
    if getattr(row, "answer", None) == "identical":
        return ""
    return format_interval(row.low, row.high, signed=True).replace(NO_INTERVAL, "n/a")


#: The answer where unjudged documents decide; keys and JSON have the longer words.
JUDGE_FIRST: Final = "judge first"


def name_verdict(verdict: str) -> str:
    """A verdict or a status as pages write it; keys and JSON keep their word."""
    return JUDGE_FIRST if verdict == "unjudged decide" else verdict


def format_answer(answer: str | None, min_gain: float) -> str:
    """``better, by less than .005``, ``equivalent within .005 on these queries``, ``not shown``."""
    if answer is None:
        return ""
    if answer == "equivalent":
        return f"equivalent within {format_margin(min_gain)} on these queries"
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


def second_verdict(report: Report, collection: Collection, name: str) -> str:
    """The verdict on the second measure, from p and interval in its own family; empty = none."""
    items = (collection.comparison(name, measure) for measure in collection.measures[1:2])
    if (item := next(items, None)) is None:
        return ""
    if not item.wins + item.losses:
        return "identical"
    shown = "better" if item.difference > 0 else "worse"
    return shown if item.p is not None and item.p <= report.alpha else "not shown"


def describe_family(comparisons: int, coverage: str) -> str:
    """What p and intervals account for, in a sentence."""
    count = pluralize(comparisons, "comparison")
    return f"p and {coverage} intervals of differences hold together for {count}."


def describe_missing_intervals(rows: Iterable[ComparedRow]) -> str:
    """Why rows have no interval; empty where all of them have one."""
    if all(row.low is not None and not math.isnan(row.low) for row in rows):
        return ""
    return "n/a = too few differing queries for an interval."


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
    rows: Sequence[ComparedRow],
    first_group: Sequence[str],
    systems: int,
    groups: int,
    preference: Preference | None = None,
) -> Iterator[Finding]:
    """The best group of three systems or more, then what no rule can see.

    Args:
        rows: The comparisons on the primary measure.
        first_group: The systems not shown to be worse than any other; empty = not known.
        systems: So many were compared pair by pair, the baseline included.
        groups: G, the units of the inference.
        preference: The recommended system, and why; None = none.
    """
    if first_group and systems > 2:
        yield Finding(describe_best_group(first_group, systems, preference), key="best group")
    text = unseen_losses(groups)
    if text is not None and any(row.answer in SHOWN for row in rows):
        yield Finding(text, key="unseen losses")


def describe_best_group(
    names: Sequence[str], systems: int, preference: Preference | None = None
) -> str:
    """``Best group: 4 systems, no difference shown: a, b, c and 1 more. …``.

    Args:
        names: Its systems.
        systems: So many were compared pair by pair.
        preference: The recommended one of them, and why; None = none.
    """
    if len(names) == systems:
        return f"Best group: all {systems:,} systems, no difference shown."
    others = "Each other system is shown to be worse than at least one system, over all pairs."
    if len(names) == 1:
        return f"Best group: {names[0]} alone. {others}"
    count, listed = pluralize(len(names), "system"), list_names(names)
    if preference is None or not preference.reason:
        return f"Best group: {count}, no difference shown: {listed}. {others}"
    name, reason = preference.comparison.candidate, preference.reason.removeprefix("it ")
    return (
        f"Best group: {count}, no difference shown; simplest: {name}. The group: {listed}; {name} "
        f"{reason}. {others}"
    )


def format_share(share: float | None) -> str:
    """A share as a whole percentage; one decimal below 1 %."""
    if share is None:
        return "n/a"
    return f"{100 * share:.1f} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def describe_share(share: Share) -> str:
    """A share with its interval: ``56 % [53, 59]``."""
    return f"{format_share(share.share)} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def describe_promise(chosen: ChosenSignal, limit: str, origin: str) -> str:
    """The threshold, what it promises, and what it keeps.

    Args:
        chosen: The signal.
        limit: Share of the unanswerable queries that may be answered.
        origin: How the signal was chosen, and which queries set the threshold.
    """
    threshold = "any value" if chosen.threshold is None else f"{chosen.threshold:.6g}"
    owner = f" of {chosen.system}" if chosen.system else ""
    return (
        f"Answer if {chosen.signal}{owner} is above {threshold}: then at most {limit} of "
        f"unanswerable queries like these are answered, with 95 % confidence. It keeps "
        f"{describe_share(chosen.kept)} of the answerable ones ({origin} without an answer set the "
        "threshold)."
    )


def compare_with_second(against: SignalComparison) -> str:
    """How much more the chosen signal keeps than the second best."""
    owner = f" of {against.system}" if against.system else ""
    interval = ""
    if against.low is not None and against.high is not None:
        interval = f" [{100 * against.low:+.0f}, {100 * against.high:+.0f}]"
    is_shown = "a difference is shown" if against.p <= ALPHA else "no difference is shown"
    return (
        f"The second best is {against.signal}{owner}. On the same answerable queries, the chosen "
        f"signal keeps {100 * against.difference:+.0f} points{interval}: {is_shown} "
        f"(p {format_number(against.p)})."
    )
