"""Tables of an evaluation: systems, comparisons, slices of the queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fusion_bench.checks.unjudged import DECLARE, SPARSE
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import format_condition, sort_field_values
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    MeasureResult,
    SourceTieResult,
    SystemResult,
)
from fusion_bench.measures.aliases import display_measure, is_bounded
from fusion_bench.report.answer_texts import (
    describe_correction,
    describe_few_changes,
    find_answer_tone,
    format_adjusted_p,
    format_answer,
    format_compared_interval,
)
from fusion_bench.report.data_warnings import JudgedColumns, note_unknown_ends
from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.trial_variance import add_trial_variance, make_trial_terms, paired_sides
from fusion_bench.util.formatting import (
    UNADJUSTED,
    format_coverage,
    format_difference,
    format_interval,
    format_number,
    format_percent,
    list_names,
    pluralize,
)

#: Before a count that is not exact, but found in random orders: it may be more.
SAMPLED = "≥"
#: How many documents are unjudged, and what they could change; see ``docs/statistics.md``.
UNJUDGED_COLUMNS = ("unjudged", "judged only", "filled")
#: Left out where the order of tied documents changes no value.
TIE_COLUMNS = (
    Column("final ties"),
    Column("final tie range", is_optional=True),
    Column("source ties"),
    Column("source tie range", is_optional=True),
)


def primary_table(report: Report, collection: Collection) -> Table:
    """The primary measure: means, differences from the baseline, and verdicts."""
    primary = collection.primary_measure
    table = _measure_table(report, collection, primary)
    count, coverage = len(collection.ranked_comparisons), format_coverage(report.alpha)
    note = f"Over {pluralize(len(collection.queries), 'query')}."
    if count:
        note = (
            f"Sorted by {primary}. Difference = system - {collection.baseline} (the baseline), "
            f"paired over {pluralize(len(collection.queries), 'query')}. "
            f"{describe_correction(report.correction, report.family_size, coverage)} "
            "w/t/l = queries won, tied and lost against the baseline."
        )
    few = describe_few_changes(collection.ranked_comparisons, coverage)
    references = [f"{row.name}: {row.note}." for row in collection.reference_rows]
    title = f"Primary measure: {display_measure(primary)}"
    shown = table if count else table.without_empty_columns()
    condition = DECLARE if collection.condition and collection.comparisons else ""
    notes = (note, *filter(None, [few, condition]), *judged_notes(collection), *references)
    return Table(title, shown.columns, shown.rows, notes)


def judged_notes(collection: Collection) -> tuple[str, ...]:
    """What the columns of judged documents mean, and of which measures the bounds are not known."""
    rows, primary = collection.ranked_systems, collection.primary_measure
    bounds = ((name, row.measures[name].bounds) for row in rows for name in collection.measures)
    return (*_judged_columns(collection, primary).notes, *note_unknown_ends(bounds))


def _judged_columns(collection: Collection, measure: str) -> JudgedColumns:
    rows = (*collection.ranked_systems, *collection.reference_rows)
    return JudgedColumns.of_rows(row.measures[measure].bounds for row in rows)


def secondary_table(report: Report, collection: Collection, measure: str) -> Table:
    """A secondary measure, in the order of the primary table."""
    table = _measure_table(report, collection, measure).without_empty_columns()
    note = (
        f"{UNADJUSTED} Student's t; p and intervals of differences are not adjusted for the number "
        f"of comparisons, and no verdict rests on them. Sorted by {collection.primary_measure}."
    )
    notes = (note,) if collection.comparisons else ()
    return Table(display_measure(measure), table.columns, table.rows, notes)


def _measure_table(report: Report, collection: Collection, measure: str) -> Table:
    is_primary = measure == collection.primary_measure
    interval = f"{format_coverage(report.alpha)} interval"
    has_trials = any(row.trials for row in collection.ranked_systems)
    judged = _judged_columns(collection, measure)
    columns = (
        Column("system", is_text=True),
        *([Column("trials")] if has_trials else []),
        Column(measure),
        Column(interval, is_optional=True),
        *judged.columns,
        Column("difference"),
        Column(interval if is_primary else f"{interval}{UNADJUSTED}", is_optional=not is_primary),
        Column("adjusted p" if is_primary else f"p{UNADJUSTED}", is_optional=is_primary),
        Column("w/t/l", is_optional=True),
        *([Column("verdict", is_text=True)] if is_primary else TIE_COLUMNS),
    )
    rows = []
    for row in (*collection.ranked_systems, *collection.reference_rows):
        result, comparison = row.measures[measure], collection.comparison(row.name, measure)
        means = (format_number(result.mean), format_interval(result.low, result.high))
        tone = _row_tone(row, comparison)
        verdict = "reference"
        if comparison is not None:
            verdict = format_answer(comparison.answer, report.min_gain, alpha=report.alpha)
        last = [tone if tone == "baseline" else verdict] if is_primary else _tie_cells(result)
        trials = [f"{len(result.trials)}×" if result.trials else ""] if has_trials else []
        differences = _difference_cells(comparison, report.alpha)
        cells = (row.name, *trials, *means, *judged.cells(result.bounds), *differences, *last)
        rows.append(Row(cells, tone))
    return Table(measure, columns, tuple(rows))


def _row_tone(row: SystemResult, comparison: ComparisonResult | None) -> Tone:
    if row.kind != "system":
        return "reference"
    return "baseline" if comparison is None else find_answer_tone(comparison.answer)


def _difference_cells(comparison: ComparisonResult | None, alpha: float) -> tuple[str, ...]:
    """Difference, interval, p, wins/ties/losses; blank for a row that is not compared."""
    if comparison is None:
        return ("", "", "", "")
    return (
        format_number(comparison.difference, signed=True),
        format_compared_interval(comparison),
        format_adjusted_p(comparison, alpha),
        f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
    )


def _tie_cells(result: MeasureResult) -> tuple[str, ...]:
    """Cells of :data:`TIE_COLUMNS`: affected queries and range of means; blank: none."""
    cells: tuple[str, ...] = ()
    for ties in (result.ties, result.source_ties):
        if ties is None or not ties.affected_queries:
            cells += ("", "")
            continue
        is_sampled = isinstance(ties, SourceTieResult) and ties.settlements is not None
        means = (format_number(mean) for mean in (ties.minimum, ties.expected, ties.maximum))
        cells += (f"{SAMPLED * is_sampled}{ties.affected_queries:,}", "…".join(means))
    return cells


def _tie_legends(collection: Collection) -> dict[str, str]:
    """What the columns of ties mean, by header."""
    primary = collection.primary_measure
    results = [row.measures[primary].source_ties for row in collection.ranked_systems]
    counts = {ties.settlements for ties in results if ties and ties.affected_queries} - {None}
    sampled = "".join(
        f" {SAMPLED} = found in {count:,} random orders of these ties; else over all orders."
        for count in sorted(filter(None, counts))
    )
    return {
        "final ties": f"queries whose {primary} depends on the order of documents with equal "
        "scores in the final list; blank: none.",
        "final tie range": "mean for the worst, expected and best order.",
        "source ties": f"queries whose {primary} depends on the order of equal scores inside the "
        f"lists that the system reads; blank: none.{sampled}",
        "source tie range": "mean of the least, expected and greatest values over these orders.",
    }


def _size_cells(comparison: ComparisonResult | None, baseline_mean: float | None) -> list[str]:
    """The difference in percent of the baseline, and in standard deviations."""
    if comparison is None:
        return ["", ""]
    percent = f"{100 * comparison.difference / baseline_mean:+.1f}" if baseline_mean else "n/a"
    effect = comparison.effect_size
    return [percent, "n/a" if effect is None else f"{effect:+.2f}"]


def validity_table(collection: Collection) -> Table:
    """Sizes of effects, and what could mislead: few queries, ties, unjudged documents."""
    primary = collection.primary_measure
    columns = (
        Column("system", is_text=True),
        *map(Column, ("% of baseline", "effect size", "min. detectable")),
        *TIE_COLUMNS,
        *map(Column, UNJUDGED_COLUMNS),
    )
    rows, base = [], collection.system(collection.baseline).measures[primary].mean
    for row in collection.ranked_systems:
        comparison, detectable = collection.comparison(row.name, primary), ""
        if comparison is not None:
            detectable = format_number(comparison.min_detectable_difference)
        ties = _tie_cells(row.measures[primary])
        sizes = _size_cells(comparison, base)
        cells = (row.name, *sizes, detectable, *ties, *_unjudged_cells(row, comparison))
        rows.append(Row(cells, _row_tone(row, comparison)))
    legends = {
        "% of baseline": "difference in percent of the baseline's mean.",
        "effect size": "difference / standard deviation of the differences over queries.",
        "min. detectable": "minimum detectable difference (80 % power) by the rule of the "
        "primary table.",
        "unjudged": "share of unjudged documents in the top 10.",
        "judged only": f"difference in {primary} over judged documents only; unadjusted interval.",
        "filled": "difference where an unjudged document has the mean gain of the system's judged "
        "documents at its rank.",
        **_tie_legends(collection),
    }
    table = Table("Validity checks", columns, tuple(rows)).without_empty_columns()
    shown = {column.header for column in table.columns}
    notes = tuple(f"{name} = {text}" for name, text in legends.items() if name in shown)
    is_sparse = collection.judgments != "complete" and not collection.has_irrelevant_judgments
    sparse = (SPARSE,) if is_sparse else ()
    return replace(table, notes=(*notes, *sparse, *_unknown_ties(collection)))


def _unknown_ties(collection: Collection) -> tuple[str, ...]:
    """Systems of which nothing is known of ties inside their lists; empty = of none or all."""
    results = {row.name: row.measures[collection.primary_measure] for row in collection.systems}
    systems = {name: result for name, result in results.items() if result.ties is not None}
    unknown = [name for name, result in systems.items() if result.source_ties is None]
    if not unknown or len(unknown) == len(systems):
        return ()
    return (f"Source ties were not computed for {list_names(unknown)}: it would take too long.",)


def _unjudged_cells(row: SystemResult, comparison: ComparisonResult | None) -> tuple[str, str, str]:
    """Share of unjudged documents, and both differences that they could change."""
    share = format_percent(row.unjudged_share)
    unjudged = None if comparison is None else comparison.unjudged
    if unjudged is None or unjudged.judged_only is None:
        return share, "", ""
    judged_only = format_number(unjudged.judged_only, signed=True)
    if unjudged.low is not None:
        judged_only = format_difference(unjudged.judged_only, unjudged.low, unjudged.high)
    filled = "n/a" if unjudged.filled is None else format_number(unjudged.filled, signed=True)
    return share, judged_only, filled


def input_table(collection: Collection) -> Table:
    """The input lists: how each was read, and what was noticed."""
    columns = (
        *(Column(name, is_text=True) for name in ("list", "kind", "roles", "options")),
        *map(Column, ("unanswered", "unjudged queries", "duplicates", "zero scores")),
    )
    rows = []
    for run in collection.runs:
        options = ", ".join(f"{key}: {value}" for key, value in run.read_options.items())
        if run.on_queries is not None:
            options += f", on for {run.on_queries:,} (when: {format_condition(run.when)})"
        kind = run.kind if run.score_space is None else f"{run.kind} ({run.score_space})"
        counts = (run.unanswered_queries, run.unjudged_queries, run.duplicate_rows, run.zero_scores)
        cells = (run.title, kind, ", ".join(run.roles), options)
        rows.append(Row((*cells, *(f"{count:,}" for count in counts))))
    note = (
        "Over the whole dataset. unanswered = judged queries without a result; they score 0. "
        "Unjudged queries are ignored. Duplicates were dropped. Zero scores are usually padding."
    )
    return Table("Input lists", columns, tuple(rows), (note,))


def paired_difference(
    report: Report,
    collection: Collection,
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    mask: NDArray[np.bool_] | None = None,
    trials: Sequence[FloatArray | None] = (),
) -> MeanEstimate | None:
    """Mean of first - second on the primary measure; None where no query has both values.

    The interval of a measure in [0, 1] stays within ±1.

    Args:
        report: Whose level is used.
        collection: Whose groups are used.
        first: Shape (Q,), values by query.
        second: Likewise.
        mask: Shape (Q,), queries to use; None = all.
        trials: From ``paired_sides``, (T, Q) each: what varies over trials.
    """
    values = [np.array(side, dtype=np.float64) for side in (first, second)]
    difference = values[0] - values[1]
    is_used = np.isfinite(difference) if mask is None else np.isfinite(difference) & mask
    if not is_used.any():
        return None
    groups = number_by_appearance(collection.groups)[0][is_used]
    estimate = estimate_mean(difference[is_used], groups, alpha=report.alpha)
    sides = [None if side is None else side[:, is_used] for side in trials]
    terms = make_trial_terms(sides, groups)
    estimate = add_trial_variance(estimate, terms, alpha=report.alpha)
    return estimate.clip(-1.0, 1.0) if is_bounded(collection.primary_measure) else estimate


#: So many of the best systems are shown for each slice.
MAX_SYSTEMS = 4
#: What the slices of a field are called, where that is not its name.
SLICE_TITLES = {"type": "query type"}
#: Differences up to this are ties, as in the comparison itself.
NOISE = 1e-12


def slice_tables(report: Report, collection: Collection) -> Iterator[Table]:
    """A table for each sliced field that has two values or more."""
    for field in report.settings.get("slices", ["type"]):
        known = field == "type" or field in collection.slices
        if known and (table := slice_table(report, collection, field)) is not None:
            yield table


def slice_table(report: Report, collection: Collection, field: str) -> Table | None:
    """The baseline and the best systems on each slice; None with fewer than two slices.

    Args:
        report: The report.
        collection: Its part on one dataset.
        field: The field of the queries whose values are the slices.
    """
    primary, column = collection.primary_measure, collection.slice_values(field)
    values = sort_field_values(column)
    names = [row.name for row in collection.ranked_systems]
    candidates = [name for name in names if name != collection.baseline][:MAX_SYSTEMS]
    if len(values) < 2 or not candidates:
        return None
    base = collection.system(collection.baseline)
    shown = [base, *map(collection.system, candidates)]
    known = {
        (row.name, item.value): item.bounds
        for row in shown
        for item in row.slice_bounds
        if item.field == field
    }
    judged = JudgedColumns.of_rows(known.values())
    columns = (
        Column(field, is_text=True),
        Column("system", is_text=True, is_name=True),
        Column("queries"),
        Column(primary),
        *judged.columns,
        *map(Column, ("difference", f"{format_coverage(report.alpha)} interval")),
        Column("w/t/l", is_optional=True),
    )
    rows: list[Row] = []
    for value in values:
        mask = np.array([other == value for other in column])
        title = f"(no {field})" if value is None else value
        count = f"{mask.sum():,}"
        for row in shown:
            is_base = row is base
            first = (title if is_base else "", row.name, count if is_base else "")
            bounds = judged.cells(known.get((row.name, value)))
            means = (_masked_mean(collection, row, mask), *bounds)
            differences = ("", "", "")
            if not is_base:
                differences = _slice_difference_cells(report, collection, row, mask)
            tone: Tone = "baseline" if is_base else "plain"
            rows.append(Row((*first, *means, *differences), tone))
    note = (
        f"The baseline and the best {len(candidates)} systems by {primary} over all queries. "
        f"Intervals are not adjusted for the number of {'types' if field == 'type' else 'slices'}; "
        "no verdict rests on them."
    )
    title = f"{display_measure(primary)} by {SLICE_TITLES.get(field, field)}"
    return Table(title, columns, tuple(rows), (note, *judged.notes))


def _slice_values(collection: Collection, row: SystemResult, mask: NDArray[np.bool_]) -> FloatArray:
    return np.array(row.measures[collection.primary_measure].values, dtype=np.float64)[mask]


def _masked_mean(collection: Collection, row: SystemResult, mask: NDArray[np.bool_]) -> str:
    values = _slice_values(collection, row, mask)
    finite = values[np.isfinite(values)]
    return format_number(float(finite.mean()) if len(finite) else None)


def _trial_sides(
    collection: Collection, first: SystemResult, second: SystemResult
) -> tuple[FloatArray | None, ...]:
    """What of two systems varies over their trials."""
    if first.trials is None and second.trials is None:
        return ()
    values = (
        np.array(row.measures[collection.primary_measure].trials, dtype=np.float64)
        if row.trials
        else None
        for row in (first, second)
    )
    lists = (frozenset(row.trials.lists if row.trials else ()) for row in (first, second))
    return paired_sides(*values, is_shared=not next(lists).isdisjoint(next(lists)))


def _slice_difference_cells(
    report: Report, collection: Collection, row: SystemResult, mask: NDArray[np.bool_]
) -> tuple[str, str, str]:
    """Difference from the baseline, interval, wins/ties/losses."""
    pair = (row, collection.system(collection.baseline))
    values = [item.measures[collection.primary_measure].values for item in pair]
    result = paired_difference(
        report, collection, *values, mask=mask, trials=_trial_sides(collection, *pair)
    )
    if result is None:
        return ("n/a", "n/a", "")
    first, second = (_slice_values(collection, item, mask) for item in pair)
    difference = (first - second)[np.isfinite(first - second)]
    wins, losses = (difference > NOISE).sum(), (difference < -NOISE).sum()
    counts = f"{wins:,}/{len(difference) - wins - losses:,}/{losses:,}"
    interval = format_interval(result.low, result.high, signed=True)
    return (format_number(result.mean, signed=True), interval, counts)
