"""Comparisons of systems of finished reports as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from fusion_bench.checks.collection_warnings import warn_v2
from fusion_bench.evaluation.compared_reports import CollectionComparison
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report import data_warnings
from fusion_bench.report.answer_texts import (
    COUNTS,
    DIFFERENCE,
    answer_findings,
    describe_family,
    describe_missing_intervals,
    format_answer,
    interval_column,
    p_column,
)
from fusion_bench.report.page import Column, Finding, Page, Section, Table, make_table
from fusion_bench.stats.comparison import SHOWN, Comparison
from fusion_bench.util.formatting import (
    format_change,
    format_coverage,
    format_difference,
    format_number,
    format_p_value,
    format_percent,
    pluralize,
)


def build_comparison_page(
    collections: Sequence[CollectionComparison],
    origins: Sequence[str] = (),
    provenances: Sequence[Provenance] = (),
) -> Page:
    """A table a collection: difference, interval, p and wins of every system.

    Args:
        collections: What was compared.
        origins: Where each report comes from.
        provenances: Of each report: from them come the commands that judge what decides.
    """
    switch = {f"the {side}": on for side, on in collections[0].v2_enabled.items()}
    sections = tuple(
        Section(
            parts=tuple(_build_tables(item)),
            findings=(
                *(data_warnings.list_findings(warn_v2(switch)) if i == 0 else ()),
                *answer_findings(
                    [each for each in item.comparisons if each.answer is not None],
                    item.first_group,
                    item.systems,
                    item.comparisons[0].groups,
                ),
                *data_warnings.list_findings(item.warnings),
                *_describe_unjudged(item, provenances, len(collections)),
            ),
        )
        for i, item in enumerate(collections)
    )
    first, *others = map(_describe_best, collections)
    provenance = Section(
        "Provenance", summary="; ".join(origins), findings=tuple(map(Finding, origins))
    )
    headline = Finding(first, key="decision", details=tuple(others))
    first_section = data_warnings.judge_section(
        warning for item in collections for warning in item.warnings
    )
    sections = (*first_section, *sections)
    return Page("Comparison", sections, headline, provenance if origins else None)


def _describe_unjudged(
    item: CollectionComparison, provenances: Sequence[Provenance], collections: int
) -> Iterator[Finding]:
    """The differences that unjudged documents decide, each with both others."""
    for comparison in item.comparisons:
        if comparison.answer == "unjudged decide":
            difference = format_number(comparison.difference, signed=True)
            candidate, place = comparison.candidate, data_warnings.JudgePlace("")
            line = data_warnings.format_judge_line(place)
            if provenances:
                place = data_warnings.JudgePlace.of_report(
                    provenances[-1], item.collection, collections
                )
                line = data_warnings.format_judge_line(place, candidate, comparison.baseline)
            if len(provenances) > 1:  # no experiment has both systems
                candidate = candidate.removesuffix(" (second)")
                line = data_warnings.format_pool_line(place, candidate)
            views = item.unjudged[comparison.candidate].description
            text = (
                f"Unjudged documents decide the difference of {comparison.candidate} from "
                f"{comparison.baseline} ({difference}): {views}. Judge these first: "
                f"{line}"
            )
            yield Finding(text, "warning", "unjudged decide")


def _describe_best(item: CollectionComparison) -> str:
    """The candidate of the highest mean on the primary measure, against the baseline."""
    primary = item.comparisons[0].measure
    candidates = [c for c in item.comparisons if c.measure == primary]
    best = max(candidates, key=lambda comparison: comparison.candidate_mean)
    change = format_change(
        best.difference,
        best.baseline_mean,
        wins=best.wins,
        losses=best.losses,
        queries=best.queries,
    )
    p = format_p_value(best.p, alpha=item.alpha)
    means = f"{format_number(best.baseline_mean)} → {format_number(best.candidate_mean)}"
    difference = format_difference(best.difference, best.low, best.high)
    highest = "" if len(candidates) == 1 else f", the highest mean of {len(candidates):,}"
    answer = format_answer(best.answer, item.min_gain)
    others = len(item.first_group) - 1
    if highest and others and best.candidate in item.first_group:
        answer += f"; best group: {pluralize(others + 1, 'system')}, no difference shown"
    unjudged = item.unjudged.get(best.candidate)
    if unjudged is not None and best.answer in SHOWN:
        answer += unjudged.condition
    return (
        f"{best.candidate} against {best.baseline} on {item.collection}{highest}: "
        f"{display_measure(primary)} {means}, {change} ({difference}, p {p}): {answer}."
    )


def _build_tables(item: CollectionComparison) -> Iterator[Table]:
    """One of several measures of one system; else the primary measure, then the others."""
    primary = item.comparisons[0].measure
    queries, baseline = pluralize(item.queries, "query"), item.comparisons[0].baseline
    title = f"{item.collection}: {queries}, against {baseline}"
    rows = [each for each in item.comparisons if each.measure == primary]
    others = [each for each in item.comparisons if each.measure != primary]
    if len(rows) == 1:
        yield _build_table(item, item.comparisons, title)
        return
    table = _build_table(item, rows, f"{title}, {display_measure(primary)}")
    yield table.select_columns(lambda i: i > 0)  # without the measure, which the title names
    if others:
        yield _build_table(item, others, f"{title}, other measures").without_empty_columns()


def _build_table(item: CollectionComparison, rows: Sequence[Comparison], title: str) -> Table:
    coverage = format_coverage(item.alpha)
    answer = partial(format_answer, min_gain=item.min_gain)
    primary, best = item.comparisons[0].measure, item.first_group if item.systems > 2 else ()
    columns: list[Column[Comparison]] = [
        Column("measure", lambda row: display_measure(row.measure), is_text=True),
        Column("system", lambda row: row.candidate, is_text=True, is_name=True),
        Column("mean", lambda row: format_number(row.candidate_mean), is_optional=True),
        *data_warnings.judged_columns(item.comparisons, item.find_bounds),
        *(DIFFERENCE, interval_column(item.alpha), p_column(item.alpha), COUNTS),
        Column("verdict", lambda row: answer(row.answer), is_text=True),
    ]
    baseline = item.comparisons[0].baseline
    note = (
        f"Difference = system - {baseline}. {describe_family(item.family, coverage)} Each measure "
        f"is a family of its own. w/t/l = queries won, tied and lost against {baseline}."
    )
    missing = describe_missing_intervals(rows)
    repeats = (
        "Values of systems with several trials are means over these. Their intervals hold for new "
        "trials and new queries."
    )
    if all(each.trial_share is None for each in item.comparisons):
        repeats = ""
    notes = (
        *(note, *filter(None, [repeats, missing])),
        *(*data_warnings.describe_columns(columns), *_judged_notes(item)),
    )
    return make_table(
        *(title, columns, rows),
        notes=notes,
        is_best=lambda row: row.measure == primary and row.candidate in best,
    )


def _judged_notes(item: CollectionComparison) -> Iterator[str]:
    """Notes on measures with unknown bounds, and on what is judged of the baseline."""
    yield from data_warnings.note_unknown_ends(
        pair for each in item.bounds.values() for pair in each.items()
    )
    baseline = item.comparisons[0].baseline
    if known := item.bounds.get(baseline):
        texts = []
        for name, each in known.items():
            text = f"{display_measure(name)} Judged@{each.depth} {format_percent(each.judged)}"
            ends = f", {data_warnings.BOUNDS_HEADER} {data_warnings.format_ends(each)}"
            texts.append(text if each.low is None else text + ends)
        yield f"The baseline {baseline}: {'; '.join(texts)}."
