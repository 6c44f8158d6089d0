"""Tables of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    ListInfo,
    MeasureResult,
    Report,
    SystemResult,
    TieResult,
)
from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.util.formatting import (
    UNADJUSTED,
    format_coverage,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    pluralize,
)

TONES: dict[str | None, Tone] = {"better": "better", "worse": "worse", "no verdict": "warning"}


def primary_table(report: Report, collection: Collection) -> Table:
    """The primary measure: means, differences from the baseline, and verdicts."""
    primary, interval = collection.primary_measure, f"{format_coverage(report.alpha)} interval"
    columns = (
        Column("system", is_text=True),
        Column(primary),
        Column(interval, is_optional=True),
        Column("difference"),
        Column(interval),
        Column("adjusted p"),
        Column("w/t/l"),
        Column("verdict", is_text=True),
    )
    count = sum(comparison.measure == primary for comparison in collection.comparisons)
    note = (
        f"Sorted by {primary}. Difference = system - {collection.baseline} (the baseline), paired "
        f"over {pluralize(len(collection.queries), 'query')}. Adjusted p: paired randomization "
        f"test with Holm's correction for {pluralize(count, 'comparison')}. w/t/l = queries won, "
        "tied and lost against the baseline."
    )
    references = [f"{row.name} ({row.kind}): {row.note}" for row in collection.reference_rows]
    rows = tuple(
        _primary_row(report, collection, row)
        for row in (*collection.ranked_systems, *collection.reference_rows)
    )
    return Table(f"Primary measure: {primary}", columns, rows, (note, *references))


def _primary_row(report: Report, collection: Collection, row: SystemResult) -> Row:
    comparison = collection.comparison(row.name, collection.primary_measure)
    tone = _row_tone(row, comparison)
    verdict = comparison.answer or "" if comparison else "baseline"
    cells = (
        row.name,
        *_mean_cells(row.measures[collection.primary_measure]),
        *_difference_cells(comparison, report.alpha),
        row.kind if tone == "reference" else verdict,
    )
    return Row(cells, tone)


def _row_tone(row: SystemResult, comparison: ComparisonResult | None) -> Tone:
    if row.kind != "system":
        return "reference"
    return "baseline" if comparison is None else TONES.get(comparison.answer, "plain")


def _mean_cells(result: MeasureResult) -> tuple[str, str]:
    return format_number(result.mean), format_interval(result.low, result.high)


def _difference_cells(comparison: ComparisonResult | None, alpha: float) -> tuple[str, ...]:
    """Difference, interval, p, wins/ties/losses; blank for a row that is not compared."""
    if comparison is None:
        return ("", "", "", "")
    is_adjusted = comparison.p_holm is not None
    p = comparison.p_holm if is_adjusted else comparison.p
    return (
        format_number(comparison.difference, signed=True),
        format_interval(comparison.low, comparison.high, signed=True),
        format_p_value(p, alpha=alpha, adjusted=is_adjusted),
        f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
    )


def validity_table(report: Report, collection: Collection) -> Table:
    """What could make the primary table mislead: too few queries, ties, unjudged documents."""
    primary, systems = collection.primary_measure, collection.ranked_systems
    has_ties = any(_count_tied(row.measures[primary].ties) for row in systems)
    columns = (
        Column("system", is_text=True),
        Column("min. detectable"),
        *((Column("tied"), Column("tie range")) if has_ties else ()),
        Column("unjudged"),
        Column("judged only"),
    )
    rows = tuple(_validity_row(collection, row, has_ties=has_ties) for row in systems)
    notes = _validity_notes(report, collection, has_ties=has_ties)
    return Table("Validity checks", columns, rows, tuple(notes))


def _validity_notes(report: Report, collection: Collection, *, has_ties: bool) -> Iterator[str]:
    primary = collection.primary_measure
    yield (
        f"min. detectable = minimum detectable difference (80 % power) at level {report.alpha:g}, "
        "before Holm's correction."
    )
    effect = "'sign differs' = no verdict is drawn"
    if not collection.has_irrelevant_judgments:
        effect = (
            "here every judged document is relevant, so it only shows their order and vetoes no "
            "verdict"
        )
    yield (
        "unjudged = share of unjudged documents in the top 10. judged only = difference in "
        f"{primary} over judged documents alone; {effect}."
    )
    if has_ties:
        yield (
            f"tied = queries whose {primary} depends on the order of tied documents. tie range = "
            "mean for the worst … expected … best order."
        )
    else:
        yield f"No system's {primary} depends on the order of tied documents."


def _validity_row(collection: Collection, row: SystemResult, *, has_ties: bool) -> Row:
    comparison = collection.comparison(row.name, collection.primary_measure)
    detectable = judged_only = ""
    if comparison is not None:
        detectable = format_number(comparison.min_detectable_difference)
        sign = " sign differs" if comparison.answer == "no verdict" else ""
        judged_only = format_number(comparison.judged_only_difference, signed=True) + sign
    ties = _tie_cells(row.measures[collection.primary_measure].ties) if has_ties else ()
    cells = (row.name, detectable, *ties, format_percent(row.unjudged_share), judged_only)
    return Row(cells, _row_tone(row, comparison))


def _count_tied(ties: TieResult | None) -> int:
    return 0 if ties is None else ties.affected_queries


def _tie_cells(ties: TieResult | None) -> tuple[str, str]:
    """Number of affected queries, and the mean over tie orders; blank for a reference row."""
    if ties is None:
        return ("", "")
    if not ties.affected_queries:
        return ("0", "")
    means = (format_number(mean) for mean in (ties.minimum, ties.expected, ties.maximum))
    return (f"{ties.affected_queries}", "…".join(means))


def measure_tables(report: Report, collection: Collection) -> Iterator[Table]:
    """One joinable table for each secondary measure, in the order of the primary table."""
    for measure in collection.measures[1:]:
        yield _measure_table(report, collection, measure)


def _measure_table(report: Report, collection: Collection, measure: str) -> Table:
    systems = (*collection.ranked_systems, *collection.reference_rows)
    has_ties = any(_count_tied(row.measures[measure].ties) for row in systems)
    interval = f"{format_coverage(report.alpha)} interval"
    columns = (
        Column("system", is_text=True),
        Column(measure),
        Column(interval, is_optional=True),
        Column("difference"),
        Column(interval, is_optional=True),
        Column(f"p{UNADJUSTED}"),
        Column("w/t/l", is_optional=True),
        *((Column("tied"), Column("tie range", is_optional=True)) if has_ties else ()),
    )
    rows = []
    for row in systems:
        result = row.measures[measure]
        difference = _difference_cells(collection.comparison(row.name, measure), report.alpha)
        ties = _tie_cells(result.ties) if has_ties else ()
        tone = _secondary_tone(collection, row)
        rows.append(Row((row.name, *_mean_cells(result), *difference, *ties), tone))
    note = (
        f"{UNADJUSTED} Not adjusted for the number of comparisons; no verdict rests on it. Sorted "
        f"by {collection.primary_measure}."
    )
    return Table(measure, columns, tuple(rows), (note,), is_joinable=True)


def _secondary_tone(collection: Collection, row: SystemResult) -> Tone:
    if row.kind != "system":
        return "reference"
    return "baseline" if row.name == collection.baseline else "plain"


def input_table(collection: Collection) -> Table:
    """The input lists: how each was read, and what was noticed."""
    columns = (
        *(Column(name, is_text=True) for name in ("list", "kind", "roles", "options")),
        Column("unanswered"),
        Column("unjudged queries"),
        Column("duplicates"),
        Column("zero scores"),
    )
    note = (
        "Over the whole dataset. unanswered = judged queries without a result; they score 0. "
        "Unjudged queries are ignored. Duplicates were dropped. Zero scores are usually padding."
    )
    return Table("Input lists", columns, tuple(map(_input_row, collection.runs)), (note,))


def _input_row(run: ListInfo) -> Row:
    options = ", ".join(f"{key}: {value}" for key, value in run.read_options.items())
    kind = run.kind if run.score_space is None else f"{run.kind} ({run.score_space})"
    counts = (run.unanswered_queries, run.unjudged_queries, run.duplicate_rows, run.zero_scores)
    cells = (run.name, kind, ", ".join(run.roles), options)
    return Row((*cells, *(f"{count:,}" for count in counts)))
