"""The page of estimated differences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fusion_bench.checks.judges import SHARED_FAMILY
from fusion_bench.judging.estimate import (
    LEAST_DIFFERENCE,
    EstimatedDifference,
    GradeEstimate,
    MeanRecord,
)
from fusion_bench.report import page
from fusion_bench.report.answer_texts import (
    DIFFERENCE,
    find_answer_tone,
    format_answer,
)
from fusion_bench.report.data_warnings import judge_section
from fusion_bench.stats.inference import MIN_CHANGED
from fusion_bench.stats.prediction_powered import PeoplePlan
from fusion_bench.util.formatting import (
    format_coverage,
    format_difference,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    list_names,
    pluralize,
)

#: Stands behind numbers that too few differing queries support.
FEW_CHANGES = " (few)"
#: Share of a top 10 without grades from which a warning says so.
MUCH_UNJUDGED = 0.05
#: Probability with which a sample misses errors on so many of the queries.
UNSEEN = 0.05
HOLDS = (
    "The estimate adds people's mean correction to λ times the machine's difference over all "
    "queries. Its interval holds whatever the machine's bias, because people's queries are a "
    "random sample. The machine's own interval says nothing of its bias."
)


def build_estimate_page(estimate: GradeEstimate) -> page.Page:
    """The differences, each judge alone beside them, and what more judging would do."""
    primary = [each for each in estimate.differences if each.measure == estimate.measures[0]]
    section = page.Section(
        facts=dict(_list_facts(estimate)),
        summary="; ".join(f"{name} {value}" for name, value in _list_facts(estimate)),
        text=HOLDS,
        findings=tuple(_list_warnings(estimate, primary)),
        parts=(
            *(_build_table(estimate, measure) for measure in estimate.measures),
            _build_judging_table(estimate, primary),
        ),
    )
    lines = [_describe(estimate, each) for each in primary]
    headline = page.Finding(lines[0], key="decision", details=tuple(lines[1:]))
    sections = (*judge_section(estimate.data_warnings), section)
    return page.Page(
        f"Estimate: {estimate.name}",
        sections,
        headline,
        page.Section(
            "Provenance", summary=estimate.provenance.origin, facts=estimate.provenance.facts
        ),
    )


def _list_facts(estimate: GradeEstimate) -> Iterator[tuple[str, str]]:
    yield "dataset", estimate.dataset
    yield f"people ({estimate.people})", pluralize(estimate.people_queries, "query")
    yield f"machine ({estimate.machine})", pluralize(estimate.queries, "query")
    yield "baseline", estimate.baseline
    yield "alpha", f"{estimate.alpha:g}"


def _list_warnings(
    estimate: GradeEstimate, primary: list[EstimatedDifference]
) -> Iterator[page.Finding]:
    for kind, shares in estimate.unjudged.items():
        most = max(shares, key=lambda name: shares[name])
        if shares[most] > MUCH_UNJUDGED:
            judge = estimate.people if kind == "people" else estimate.machine
            text = (
                f"{judge!r} did not grade {format_percent(shares[most])} of the top 10 of {most}. "
                "These documents count as not relevant, in the estimate too."
            )
            yield page.Finding(text, "warning", "unjudged documents")
    if estimate.related:
        text = (
            f"{estimate.machine!r} is of the same model family as {list_names(estimate.related)}: "
            "its own difference may favor them. People's correction removes this bias."
        )
        yield page.Finding(text, "warning", SHARED_FAMILY)
    if estimate.trials:
        text = (
            f"The values of {list_names([*estimate.trials])} are means over trials. The intervals "
            "hold for these trials, and not for new ones."
        )
        yield page.Finding(text, "warning", "trials")
    worse = []
    for each in primary:
        sides = (each, each.people)
        widths = [s.high - s.low for s in sides if s.low is not None and s.high is not None]
        if len(widths) == 2 and widths[0] > widths[1]:
            worse.append(each.candidate)
    if worse:
        text = (
            f"People's grades alone give a narrower interval for {list_names(worse)}. The machine "
            "predicts them too badly to help."
        )
        yield page.Finding(text, "warning", "no gain")


def _build_table(estimate: GradeEstimate, measure: str) -> page.Table:
    """The differences on one measure."""
    is_primary = measure == estimate.measures[0]
    chosen = [each for each in estimate.differences if each.measure == measure]
    coverage = format_coverage(estimate.alpha)
    columns: tuple[page.Column[EstimatedDifference], ...] = (
        page.Column("system", lambda each: each.candidate, is_text=True),
        DIFFERENCE,
        page.Column(f"{coverage} interval", _format_marked_interval),
        page.Column("adjusted p" if is_primary else "p", partial(_format_p, estimate.alpha)),
        page.Column(
            *("verdict", lambda each: format_answer(each.answer, estimate.min_gain)),
            is_text=True,
            is_name=True,
        ),
        page.Column("people alone", lambda each: _format_side(each.people)),
        page.Column("machine alone", lambda each: _format_side(each.machine)),
        page.Column("λ", lambda each: f"{each.weight:.2f}", is_optional=True),
    )
    comparisons = f"{pluralize(len(chosen), 'comparison')}: adjusted p and intervals hold together"
    unseen = 1 - UNSEEN ** (1 / estimate.people_queries)
    notes = [
        f"{comparisons} (Bonferroni)."
        if is_primary
        else "p and intervals are not adjusted for the number of comparisons.",
        f"People's {estimate.people_queries:,} queries may miss every error that the machine makes "
        f"on {format_percent(unseen)} of the queries (probability {UNSEEN:g}). No interval "
        "accounts for errors that they miss.",
    ]
    if any(each.few_changes for each in chosen):
        notes.append(
            f"{FEW_CHANGES.strip()} = people and machine differ by {LEAST_DIFFERENCE:g} or more on "
            f"fewer than {MIN_CHANGED} queries: not a {format_coverage(estimate.alpha)} interval, "
            "and nothing is shown. How wrong the machine is on other queries is not known."
        )
    return page.make_table(
        f"{measure}: difference to {estimate.baseline}",
        columns,
        chosen,
        notes=notes,
        tone=lambda each: find_answer_tone(each.answer),
    )


def _format_marked_interval(each: EstimatedDifference) -> str:
    interval = format_interval(each.low, each.high, signed=True)
    return f"{interval}{FEW_CHANGES * each.few_changes}"


def _format_p(alpha: float, each: EstimatedDifference) -> str:
    p = each.p if each.p_adjusted is None else each.p_adjusted
    text = format_p_value(p, alpha=alpha, adjusted=each.p_adjusted is not None)
    return f"{text}{FEW_CHANGES * each.few_changes}"


def _format_side(side: MeanRecord) -> str:
    return format_difference(side.difference, side.low, side.high)


def _build_judging_table(estimate: GradeEstimate, chosen: list[EstimatedDifference]) -> page.Table:
    """What more queries of people would do."""
    sizes = sorted({size for each in chosen for size in each.judging.expected})
    columns: list[page.Column[EstimatedDifference]] = [
        page.Column("system", lambda each: each.candidate, is_text=True),
        page.Column("half width now", _format_half_width),
        *page.make_columns(
            {size: f"with {size:,}" for size in sizes},
            lambda size, each: format_number(each.judging.expected.get(size)),
        ),
        page.Column("more queries for half", lambda each: _format_added(each.judging)),
        page.Column("people alone would need", lambda each: f"{each.judging.people_alone:,}"),
    ]
    notes = (
        f"Expected half widths of the interval where people judge so many of the "
        f"{estimate.queries:,} queries. λ and the spread stay as they are. Set the number "
        "beforehand: intervals cover less where judging stops as soon as the answer pleases.",
        "In brackets: the range that the uncertain spread of people's values leaves. Out of reach: "
        "not even all of them would halve the interval; more queries would.",
    )
    return page.make_table("What more queries of people would do", columns, chosen, notes=notes)


def _format_half_width(each: EstimatedDifference) -> str:
    return f"{format_number(each.judging.half_width)}{FEW_CHANGES * each.few_changes}"


def _format_added(judging: PeoplePlan) -> str:
    """``57 (12 to 190)``; ``out of reach`` where not even all queries would do."""
    if judging.added is None:
        return "out of reach"
    least, most = judging.added_range
    more = "or more" if most is None else f"to {most:,}"
    return f"{judging.added:,} ({least or 1:,} {more})"


def _describe(estimate: GradeEstimate, each: EstimatedDifference) -> str:
    """One difference, in two sentences."""
    verdict = format_answer(each.answer, estimate.min_gain)
    start = f"{each.candidate} against {estimate.baseline}: {verdict}"
    interval = format_difference(each.difference, each.low, each.high)
    judging = each.judging
    if each.answer == "identical":
        return f"{start} on {estimate.dataset}."
    more = (
        f"People and machine differ by {LEAST_DIFFERENCE:g} or more on {each.differing} of these: "
        f"fewer than {MIN_CHANGED}, so that this is not a "
        f"{format_coverage(estimate.alpha)} interval."
        if each.few_changes
        else "Not even all queries at hand would halve the interval."
        if judging.added is None
        else f"About {_format_added(judging)} more queries of people would halve the interval."
    )
    return (
        f"{start} on {estimate.dataset}, {each.measure} {interval} from "
        f"{pluralize(estimate.people_queries, 'query')} of people and {estimate.queries:,} of the "
        f"machine. {more}"
    )
