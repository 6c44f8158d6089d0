"""Tables of an evaluation: systems, comparisons, slices of the queries."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from fusion_bench.checks.unjudged import DECLARE, SPARSE
from fusion_bench.data.ordering import BoolArray
from fusion_bench.data.records import sort_field_values
from fusion_bench.evaluation.recommendation import preferred_system
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import (
    AbstainResult,
    Collection,
    ComparisonResult,
    MeasureResult,
    SourceTieResult,
    SystemResult,
    TieResult,
)
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.answer_texts import (
    COUNTS,
    DIFFERENCE,
    compared_column,
    describe_family,
    describe_missing_intervals,
    describe_share,
    find_answer_tone,
    format_answer,
    interval_column,
    p_column,
)
from fusion_bench.report.data_warnings import describe_columns, judged_columns, note_unknown_ends
from fusion_bench.report.page import (
    BEST_MARK,
    Column,
    Table,
    Tone,
    columns_of,
    make_columns,
    make_table,
)
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.stats.unjudged import UnjudgedResult
from fusion_bench.stats.values import Pair
from fusion_bench.util.formatting import (
    format_coverage,
    format_difference,
    format_interval,
    format_number,
    format_percent,
    is_known,
    list_names,
    pluralize,
)

#: Before a count that is not exact, but found in random orders: it may be more.
SAMPLED = "≥"


def primary_table(report: Report, collection: Collection) -> Table:
    """The primary measure: means, differences from the baseline, and verdicts."""
    primary = collection.primary_measure
    table = _measure_table(report, collection, primary)
    count, coverage = len(collection.ranked_comparisons), format_coverage(report.alpha)
    note = f"Over {pluralize(len(collection.queries), 'query')}."
    if count:
        note = (
            f"Sorted by {display_measure(primary)}. Difference = system - {collection.baseline} "
            f"(the baseline), paired over {pluralize(len(collection.queries), 'query')}. "
            f"{describe_family(report.family_size, coverage)} "
            "w/t/l = queries won, tied and lost against the baseline."
        )
    best = f"{BEST_MARK} = best group." if collection.shown_first_group else ""
    few = describe_missing_intervals(collection.ranked_comparisons)
    references = [f"{row.name}: {row.note}." for row in collection.reference_rows]
    condition = DECLARE if collection.condition and collection.comparisons else ""
    marks = (*filter(None, [best, few, condition]), *describe_columns(_abstain_columns(collection)))
    notes = (note, *marks, *judged_notes(collection), *references)
    title = f"Primary measure: {display_measure(primary)}"
    if second := collection.measures[1:2]:
        title += f"; beside it {display_measure(second[0])}"
    return replace(table if count else table.without_empty_columns(), title=title, notes=notes)


def judged_notes(collection: Collection) -> tuple[str, ...]:
    """What the columns of judged documents mean, and of which measures the bounds are not known."""
    rows, primary = collection.ranked_systems, collection.primary_measure
    bounds = ((name, row.measures[name].bounds) for row in rows for name in collection.measures)
    notes = describe_columns(_judged_columns(collection, primary))
    return (*notes, *note_unknown_ends(bounds))


def _judged_columns(collection: Collection, measure: str) -> list[Column[SystemResult]]:
    rows = (*collection.ranked_systems, *collection.reference_rows)
    return judged_columns(rows, lambda row: row.measures[measure].bounds)


def secondary_table(report: Report, collection: Collection, measure: str) -> Table:
    """A secondary measure, in the order of the primary table."""
    note = (
        "A family of its own: p and intervals of its differences hold together, and no verdict "
        f"rests on them. Sorted by {display_measure(collection.primary_measure)}."
    )
    table = _measure_table(report, collection, measure).without_empty_columns()
    return replace(table, notes=(note,) if collection.comparisons else ())


def _measure_table(report: Report, collection: Collection, measure: str) -> Table:
    alpha, is_primary = report.alpha, measure == collection.primary_measure
    compared = _compared_systems(collection, measure)
    rows = (*collection.ranked_systems, *collection.reference_rows)
    repeats = Column[MeasureResult]("trials", lambda r: f"{len(r.trials)}×" if r.trials else "")

    def verdict(row: SystemResult) -> str:
        if row.name in compared:
            return format_answer(compared[row.name].answer, report.min_gain)
        return "baseline" if row.kind == "system" else "reference"

    means: tuple[Column[MeasureResult], ...] = (
        *([repeats] if any(row.trials for row in rows) else ()),
        Column(display_measure(measure), lambda item: format_number(item.mean)),
        replace(interval_column(alpha), cell=_format_mean_interval, is_optional=True),
    )
    differences = (
        (compared_column(alpha), replace(p_column(alpha), is_optional=True))
        if is_primary
        else (DIFFERENCE, replace(interval_column(alpha), is_optional=True), p_column(alpha))
    )
    columns: list[Column[SystemResult]] = [
        Column("system", lambda row: row.name, is_text=True, is_name=True),
        *columns_of(means, lambda row: row.measures[measure]),
        *(_mean_column(name) for name in collection.measures[1:2] if is_primary),
        *(_abstain_columns(collection) if is_primary else ()),
        *_judged_columns(collection, measure),
        *columns_of((*differences, COUNTS), lambda row: compared.get(row.name)),
    ]
    if is_primary:
        columns.append(Column("verdict", verdict, is_text=True))
    else:
        columns += _tie_columns(collection, measure)
    best = collection.shown_first_group if is_primary else ()
    preferred = preferred_system(collection)
    return make_table(
        display_measure(measure),
        columns,
        rows,
        tone=partial(_row_tone, compared),
        is_best=lambda row: row.name in best,
        is_kept=lambda row: row.name == preferred,
    )


def _abstain_columns(collection: Collection) -> list[Column[SystemResult]]:
    """Which queries are answered; none if no system has a threshold."""
    rows = [row.abstain for row in collection.ranked_systems if row.abstain is not None]
    if not rows:
        return []
    legend = "share of the queries without an answer that the system answers, with a 95 % interval"
    if any(row.is_calibrated_here for row in rows):
        legend += "; some of these queries set the threshold, so the share says nothing new"
    columns: tuple[Column[AbstainResult], ...] = (
        Column(
            "answered",
            lambda each: describe_share(each.answered),
            legend="share of the queries with an answer that the system answers, with a 95 % "
            "interval. The other columns are of all lists, answered or not.",
        ),
        Column(
            "false answers",
            lambda each: describe_share(each.false_answers)
            if each.false_answers.queries
            else "n/a",
            legend=f"{legend}.",
        ),
    )
    return columns_of(columns, lambda row: row.abstain)


def _mean_column(measure: str) -> Column[SystemResult]:
    return Column(display_measure(measure), lambda row: format_number(row.measures[measure].mean))


#: A ranked list of more systems has a grid above it, if a reranker is blended into two or more.
MIN_GRID_SYSTEMS = 4


def grid_table(collection: Collection) -> Table | None:
    """Means of the first two measures, one row a fusion and one column a blend.

    None if fewer than two systems have a reranker, or all systems fit a short list.
    """
    plain = json.dumps({"method": "none"})
    fusions: dict[str, dict[str, SystemResult]] = {}
    for row in collection.competitors.values():
        config = {key: value for key, value in (row.config or {}).items() if key != "name"}
        blend = json.dumps(config.pop("blend", None) or {"method": "none"}, sort_keys=True)
        if len(config.get("runs", ())) > 1:
            fusions.setdefault(json.dumps(config, sort_keys=True), {}).setdefault(blend, row)
    fusions = {key: row for key, row in fusions.items() if row.keys() - {plain}}
    blends = dict.fromkeys(blend for row in fusions.values() for blend in row)
    reranked = sum(len(row.keys() - {plain}) for row in fusions.values())
    if reranked < 2 or len(collection.competitors) <= MIN_GRID_SYSTEMS:
        return None
    measures = collection.measures[:2]

    def cell(blend: str, row: Mapping[str, SystemResult]) -> str:
        if blend not in row:
            return ""
        means = [row[blend].measures[name].mean for name in measures]
        return "/".join(
            "n/a" if mean is None or not is_known(mean) else f"{mean:.3f}".removeprefix("0")
            for mean in means
        )

    def name(row: Mapping[str, SystemResult]) -> str:
        return (row.get(plain) or next(iter(row.values()))).name

    names = {blend: _name_blend(blend, plain, fusions.values()) for blend in blends}
    columns: list[Column[Mapping[str, SystemResult]]] = [
        Column(" / ".join(map(display_measure, measures)), name, is_text=True, is_name=True),
        *make_columns(names, cell),
    ]
    title = f"{' / '.join(map(display_measure, measures))} by fusion and blend"
    table = make_table(title, columns, fusions.values(), is_transposable=True)
    return replace(table, is_grid=True)


def _name_blend(blend: str, plain: str, fusions: Iterable[Mapping[str, SystemResult]]) -> str:
    """What the names of a blend's systems add to those without a blend; else its method."""
    if blend == plain:
        return "no blend"
    config = json.loads(blend)
    method = f"{config['method']} {config.get('retrieval', '')}".strip()
    for row in fusions:
        if {blend, plain} <= row.keys() and row[blend].name.startswith(row[plain].name):
            return row[blend].name.removeprefix(row[plain].name).strip(" ,:+-_") or method
    return method


def _format_mean_interval(result: MeasureResult) -> str:
    return format_interval(result.low, result.high)


def _compared_systems(collection: Collection, measure: str) -> dict[str, ComparisonResult]:
    """System → its comparison with the baseline."""
    return {each.candidate: each for each in collection.comparisons if each.measure == measure}


def _row_tone(compared: Mapping[str, ComparisonResult], row: SystemResult) -> Tone:
    if row.kind != "system":
        return "reference"
    comparison = compared.get(row.name)
    return "baseline" if comparison is None else find_answer_tone(comparison.answer)


def _tie_columns(collection: Collection, measure: str) -> Iterator[Column[SystemResult]]:
    """Affected queries and range of means; blank where no order of tied documents changes one."""
    results = [row.measures[measure].source_ties for row in collection.ranked_systems]
    counts = {ties.settlements for ties in results if ties and ties.affected_queries} - {None}
    sampled = "".join(
        f" {SAMPLED} = found in the reversed and {count:,} random orders; else over all."
        for count in sorted(filter(None, counts))
    )
    legends = {
        "final ties": f"queries whose {display_measure(measure)} depends on the order of "
        "documents that no score tells apart in the final list; blank: none.",
        "final tie range": "mean for the worst, expected and best order.",
        "source ties": f"queries whose {display_measure(measure)} depends on the order of equal "
        f"scores inside the lists that the system reads; blank: none.{sampled}",
        "source tie range": "mean of the least, expected and greatest values over these orders.",
    }
    for header, legend in legends.items():
        is_range, is_final = header.endswith("range"), header.startswith("final")
        cell = _format_tie_range if is_range else _count_ties
        column = Column[TieResult](header, cell, is_optional=is_range, legend=legend)
        yield column.of(partial(_find_ties, measure, "ties" if is_final else "source_ties"))


def _find_ties(measure: str, field: str, row: SystemResult) -> TieResult | None:
    ties: TieResult | None = getattr(row.measures[measure], field)
    return ties


def _count_ties(ties: TieResult) -> str:
    is_sampled = isinstance(ties, SourceTieResult) and ties.settlements is not None
    return f"{SAMPLED * is_sampled}{ties.affected_queries:,}" if ties.affected_queries else ""


def _format_tie_range(ties: TieResult) -> str:
    means = map(format_number, (ties.minimum, ties.expected, ties.maximum))
    return "…".join(means) if ties.affected_queries else ""


#: Of what is compared.
SIZE_COLUMNS: tuple[Column[ComparisonResult], ...] = (
    Column(
        "effect size",
        lambda item: "n/a" if item.effect_size is None else f"{item.effect_size:+.2f}",
        legend="difference / standard deviation of the differences over queries.",
    ),
    Column(
        "min. detectable",
        lambda item: format_number(item.min_detectable_difference),
        legend="minimum detectable difference (80 % power) by the rule of the primary table.",
    ),
)


def validity_table(collection: Collection) -> Table:
    """Sizes of effects, and what could mislead: few queries, ties, unjudged documents."""
    primary = collection.primary_measure
    compared = _compared_systems(collection, primary)
    base = collection.system(collection.baseline).measures[primary].mean

    def percent(item: ComparisonResult) -> str:
        return f"{100 * item.difference / base:+.1f}" if base else "n/a"

    percents = "difference in percent of the baseline's mean."
    sizes = (Column("% of baseline", percent, legend=percents), *SIZE_COLUMNS)
    unjudged: tuple[Column[UnjudgedResult], ...] = (
        Column(
            "judged only",
            _format_judged_only,
            legend=f"difference in {display_measure(primary)} over judged documents only; "
            "unadjusted interval.",
        ),
        Column(
            "unjudged estimated",
            lambda item: format_number(item.filled, signed=True),
            legend="difference where an unjudged document has the mean gain of the system's judged "
            "documents at its rank.",
        ),
    )
    columns: list[Column[SystemResult]] = [
        Column("system", lambda row: row.name, is_text=True),
        *columns_of(sizes, lambda row: compared.get(row.name)),
        *_tie_columns(collection, primary),
        Column(
            "unjudged",
            lambda row: format_percent(row.unjudged_share),
            legend="share of unjudged documents in the top 10.",
        ),
        *columns_of(unjudged, partial(_find_unjudged, compared)),
    ]
    rows, tone = collection.ranked_systems, partial(_row_tone, compared)
    table = make_table("Validity checks", columns, rows, tone=tone).without_empty_columns()
    # What ties mean stands last.
    notes = sorted(table.legends, key=lambda legend: " tie" in legend.partition(" = ")[0])
    is_sparse = collection.judgments != "complete" and not collection.has_irrelevant_judgments
    sparse = (SPARSE,) if is_sparse else ()
    return replace(table, notes=(*notes, *sparse, *_unknown_ties(collection)))


def _find_unjudged(
    compared: Mapping[str, ComparisonResult], row: SystemResult
) -> UnjudgedResult | None:
    """What unjudged documents could change, where that was computed."""
    unjudged = compared[row.name].unjudged if row.name in compared else None
    return None if unjudged is None or unjudged.judged_only is None else unjudged


def _format_judged_only(unjudged: UnjudgedResult) -> str:
    if unjudged.low is None:
        return format_number(unjudged.judged_only, signed=True)
    return format_difference(unjudged.judged_only, unjudged.low, unjudged.high)


def _unknown_ties(collection: Collection) -> tuple[str, ...]:
    """Systems of which nothing is known of ties inside their lists; empty = of none or all."""
    results = {row.name: row.measures[collection.primary_measure] for row in collection.systems}
    systems = {name: result for name, result in results.items() if result.ties is not None}
    unknown = [name for name, result in systems.items() if result.source_ties is None]
    if not unknown or len(unknown) == len(systems):
        return ()
    return (f"Source ties were not computed for {list_names(unknown)}: it would take too long.",)


def find_pair(
    collection: Collection, candidate: str, baseline: str, mask: BoolArray | None = None
) -> Pair | None:
    """Two systems on the queries where both have a primary value; None where none has.

    Args:
        collection: Has the values.
        candidate: Name of a system.
        baseline: Name of another one.
        mask: Shape (Q,), queries to use; None = all.
    """
    pair = collection.table.pair(candidate, collection.primary_measure, baseline)
    is_used = np.isfinite(pair.difference)
    pair = pair.select_queries(is_used if mask is None else is_used & mask)
    return pair if pair.keys else None


#: So many of the best systems are shown for each slice.
MAX_SYSTEMS = 4
#: The difference of a system that has no value on a slice.
NO_ESTIMATE = MeanEstimate(*5 * (math.nan,), queries=0, groups=0, freedom=math.nan)
#: What the slices of a field are called, where that is not its name.
SLICE_TITLES = {"type": "query type"}


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
    values, base = sort_field_values(column), collection.baseline
    names = [row.name for row in collection.ranked_systems if row.name != base][:MAX_SYSTEMS]
    if len(values) < 2 or not names:
        return None
    masks = {value: np.array([other == value for other in column]) for value in values}
    rows = [(value, name) for value in values for name in (base, *names)]
    bounds = {
        (item.value, row.name): item.bounds
        for row in collection.systems
        for item in row.slice_bounds
        if item.field == field
    }
    found = {
        row: find_pair(collection, row[1], base, masks[row[0]]) for row in rows if row[1] != base
    }
    pairs = {row: pair for row, pair in found.items() if pair is not None}
    estimates = {
        row: NO_ESTIMATE if pair is None else pair.estimate(report.alpha)
        for row, pair in found.items()
    }

    def title(row: tuple[str | None, str]) -> str:
        return (f"(no {field})" if row[0] is None else row[0]) if row[1] == base else ""

    def mean(row: tuple[str | None, str]) -> str:
        values = collection.table.systems[row[1]][primary].values[masks[row[0]]]
        finite = values[np.isfinite(values)]
        return format_number(float(finite.mean()) if len(finite) else None)

    columns: list[Column[tuple[str | None, str]]] = [
        Column(field, title, is_text=True),
        Column("system", lambda row: row[1], is_text=True, is_name=True),
        Column("queries", lambda row: f"{masks[row[0]].sum():,}" if row[1] == base else ""),
        Column(display_measure(primary), mean),
        *judged_columns(rows, bounds.get),
        Column[MeanEstimate]("difference", lambda each: format_number(each.mean, signed=True)).of(
            estimates.get
        ),
        interval_column(report.alpha).of(estimates.get),
        replace(COUNTS, cell=_format_counts).of(pairs.get),
    ]
    note = (
        f"The baseline and the best {len(names)} systems by {display_measure(primary)} "
        "over all queries. Intervals are not adjusted for the number of "
        f"{'types' if field == 'type' else 'slices'}; no verdict rests on them."
    )
    heading = f"{display_measure(primary)} by {SLICE_TITLES.get(field, field)}"
    return make_table(
        *(heading, columns, rows),
        notes=(note, *describe_columns(columns)),
        tone=lambda row: "baseline" if row[1] == base else "plain",
    )


def _format_counts(pair: Pair) -> str:
    """Queries won, tied and lost."""
    return f"{pair.wins:,}/{len(pair.keys) - pair.changed:,}/{pair.losses:,}"
