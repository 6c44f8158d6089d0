"""Tables of a tuning run: parameters, trials, gains, thresholds, the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set

from fusion_bench.config.query_types import CLASS_KEYS
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.data_warnings import JudgedColumns, note_unknown_ends
from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.report.tuning_records import (
    Gain,
    ParameterInfo,
    ParetoFront,
    ParetoPoint,
    PerTypeResult,
    ThresholdReport,
    TuningReport,
)
from fusion_bench.report.tuning_texts import (
    EFFORT_NAMES,
    MAX_CHOICES,
    format_choices,
    format_paired,
    format_range,
    format_value,
    format_values,
)
from fusion_bench.util.formatting import (
    format_coverage,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
)

#: What a point may cost: of 1,000 queries, per query, and per query at the 95th percentile.
AMOUNTS = ("cost", "seconds", "slow")


def pareto_table(report: TuningReport, front: ParetoFront) -> Table:
    """The efficient points, the default and the choice, with their held-out values.

    An effort that no point knows has no column.
    """
    amounts = {amount for amount in AMOUNTS if _is_known_of_any(front, amount)}
    points = [point for point in front.points if point.is_shown]
    judged = JudgedColumns.of_rows(point.bounds for point in points)
    columns = (
        Column("reranker", is_text=True),
        Column("rerank depth"),
        Column("candidates per query", is_optional=bool(amounts)),
        *map(Column, ("cost of 1,000 queries", "seconds per query")),
        Column("p95 seconds", is_optional=True),
        *map(Column, (f"{report.measure}, tuning", "held out")),
        *judged.columns,
        *map(Column, ("held out: - default", "held out: - best")),
        Column("note", is_text=True),
    )
    rows = tuple(
        Row(
            tuple(_point_cells(front, point, amounts, judged)),
            "plain" if point.efficient else "warning",
        )
        for point in points
    )
    note = (
        "Each row is the best system of its depth on the tuning queries. Nothing with less effort "
        f"({' and '.join(EFFORT_NAMES[axis] for axis in front.axes)}) is as good there, except "
        "beside rows marked 'not efficient'. Held out: paired intervals against the default and "
        "against the best row, not adjusted for the number of rows."
    )
    notes = (note, *judged.notes, *effort_sources(front))
    return Table("Quality against effort", columns, rows, notes).without_empty_columns()


def _is_known_of_any(front: ParetoFront, amount: str) -> bool:
    """Whether it is known of a point that reranks; without a reranker everything is free."""
    return any(getattr(point, amount) is not None for point in front.points if point.depth)


def _point_cells(
    front: ParetoFront, point: ParetoPoint, amounts: Set[str], judged: JudgedColumns
) -> Iterator[str]:
    yield (point.reranker or "none") if len(front.efforts) > 1 else ""
    yield from (f"{point.depth:,}", f"{point.candidates:.1f}")
    for amount in AMOUNTS:
        yield _format_amount(getattr(point, amount)) if amount in amounts else ""
    yield from (format_number(point.value), format_number(point.held_out))
    yield from judged.cells(point.bounds)
    yield from (format_paired(point.over_default), format_paired(point.over_best))
    yield ", ".join((*point.roles, *(() if point.efficient else ("not efficient",))))


def _format_amount(value: float | None, unknown: str = "") -> str:
    return unknown if value is None or math.isnan(value) else f"{value:.4g}"


def effort_sources(front: ParetoFront) -> Iterator[str]:
    """Where each reranker's price and time come from, one note a reranker."""
    for effort in front.efforts:
        name = effort.reranker + ("" if effort.provider is None else f" ({effort.provider})")
        if effort.cost is None and effort.seconds is None:
            yield f"{name}: price and time are unknown, so its effort is its candidates alone."
            continue
        amounts = (
            *(effort.declared_price, effort.recorded_price),
            *(effort.declared_seconds, effort.recorded_seconds),
        )
        declared, recorded, seconds, median = (_format_amount(v, "unknown") for v in amounts)
        yield (
            f"{name}: price of 1,000 candidates: declared {declared}, in the ledger at full depth "
            f"{recorded}; used: {effort.cost or 'none'}. Seconds: declared {seconds} per candidate"
            f", in the ledger {median} per query at full depth (median); used: "
            f"{effort.seconds or 'none'}. Ledger: {effort.queries:,} queries, "
            f"{effort.calls:,} calls of up to {effort.largest_call or 0:,} documents, up "
            f"to {effort.at_once or 1:,} at once."
        )
    if all(effort.cost is None and effort.seconds is None for effort in front.efforts):
        yield "fusion-bench rerank keeps a ledger of both; tune.effort declares them."
        return
    yield (
        "Effort counts the calls needed; a small call costs as much as the smallest measured one. "
        "fusion-bench rerank keeps a ledger; 'prefer: declared' uses what tune.effort declares."
    )


TONES: dict[str | None, Tone] = {
    "ship": "better",
    "worse": "worse",
    "too few queries": "warning",
    "too few tuning queries": "warning",
    "unjudged decide": "warning",
    "groups decide": "warning",
}

#: Of intervals that are not those of the cross-fitting test.
SHARED_FOLDS = " Tuned values are cross-fitted: folds share queries, so intervals are too narrow."


def tuning_tables(report: TuningReport) -> Iterator[Table]:
    """Every table that has something to show, the most important first."""
    yield gain_table(report)
    if report.held_out_bounds:
        yield bounds_table(report)
    if report.floor:
        yield floor_table(report)
    yield parameter_table(report)
    for field, gains in report.class_gains.items():
        if gains:
            yield class_gain_table(report, field, gains)
    if report.per_type is not None:
        yield per_type_table(report, report.per_type)
    if report.front is not None:
        yield pareto_table(report, report.front)
    yield from map(threshold_table, report.thresholds)


def _build_gain_table(
    report: TuningReport,
    title: str,
    headers: tuple[str, str, str],
    gains: Sequence[tuple[str, Gain]],
    notes: Sequence[str],
    verdict: str | None = None,
) -> Table:
    """A row a gain; the verdict is that of the last one."""
    first, *means = headers
    columns = (
        Column(first, is_text=True),
        Column("queries", is_optional=True),
        *map(Column, (*means, "difference", f"{format_coverage(report.alpha)} interval", "p")),
        Column("w/t/l", is_optional=True),
    )
    rows = [
        Row(
            (
                label,
                f"{gain.queries:,}",
                format_number(gain.default),
                format_number(gain.tuned),
                format_number(gain.difference, signed=True),
                format_interval(gain.low, gain.high, signed=True),
                format_p_value(gain.p, alpha=report.alpha),
                f"{gain.wins:,}/{gain.ties:,}/{gain.losses:,}",
            )
        )
        for label, gain in gains
    ]
    rows[-1] = Row(rows[-1].cells, TONES.get(verdict, "plain"))
    return Table(title, columns, tuple(rows), tuple(notes))


def gain_table(report: TuningReport) -> Table:
    """Default against tuned: on the tuning queries, by cross-validation, and held out."""
    is_grouped = report.held_out.groups < report.held_out.queries
    effect = report.held_out.design_effect
    by_group = f", interval by group{'' if effect is None else f' (design effect {effect:.2g})'}"
    gains = [("tuning queries (biased)", report.tune)]
    notes = [
        f"Difference = tuned - default, paired by query{by_group * is_grouped}. p: "
        "two-sided sign-flip test by query or group, never below Student's t. w/t/l = queries "
        "won, tied and lost by the tuned system.",
    ]
    if report.nested is not None:
        gains.append(("nested cross-validation", report.nested))
        notes.append(
            "Nested cross-validation repeats the whole search without each fold and evaluates it "
            "there. Its folds share queries, so its interval is too narrow for a verdict."
        )
    decides = "held out"
    if report.is_cross_fitted:
        decides = "all, cross-fitted"
        notes.append(
            "Cross-fitted: each fold of the queries is evaluated with what the other folds "
            "choose. p and interval are those of the whole procedure under sign flips, with a new "
            "choice in each."
        )
    gains.append((f"{decides} (verdict)", report.held_out))
    title = f"{display_measure(report.measure)}: tuned against default"
    headers = ("queries from", "default", "tuned")
    return _build_gain_table(report, title, headers, gains, notes, report.verdict)


def floor_table(report: TuningReport) -> Table:
    """Every untuned system and every single source against the tuned system, held out."""
    judged = JudgedColumns.of_rows(row.bounds for row in report.floor)
    columns = (
        *(Column(name, is_text=True) for name in ("without tuning", "kind")),
        Column("mean"),
        *judged.columns,
        *map(Column, ("difference", f"{format_coverage(report.alpha)} interval", "p")),
        Column("against the tuned system", is_text=True),
    )
    rows = tuple(
        Row(
            (
                row.name,
                row.kind,
                format_number(row.mean),
                *judged.cells(row.bounds),
                format_number(row.difference, signed=True),
                format_interval(row.low, row.high, signed=True),
                format_p_value(row.p, alpha=report.alpha),
                row.answer.replace("min_gain", format_number(report.min_gain)),
            ),
            "warning" if row.is_not_below else "plain",
        )
        for row in report.floor
    )
    note = (
        "The same held-out queries. Difference = this - tuned; p and intervals are adjusted for "
        f"the {len(rows)} rows (max-T).{SHARED_FOLDS if report.is_cross_fitted else ''}"
    )
    title = f"{display_measure(report.measure)}: without tuning"
    return Table(title, columns, rows, (note, *judged.notes))


def bounds_table(report: TuningReport) -> Table:
    """What is judged of the default and the tuned system, on all held-out queries and by class."""
    known = [
        (queries if i == 0 else "", system, bounds)
        for queries, systems in report.held_out_bounds
        for i, (system, bounds) in enumerate(systems.items())
    ]
    judged = JudgedColumns.of_rows(bounds for _, _, bounds in known)
    texts = ("held-out queries", "system")
    columns = (*(Column(name, is_text=True) for name in texts), *judged.columns)
    rows = tuple(Row((*names, *judged.cells(bounds))) for *names, bounds in known)
    unknown = note_unknown_ends((report.measure, bounds) for _, _, bounds in known)
    title = f"{display_measure(report.measure)}: judged documents"
    return Table(title, columns, rows, (*judged.notes, *unknown))


def class_gain_table(
    report: TuningReport, field: str, gains: Sequence[tuple[str | None, Gain]]
) -> Table:
    """The held-out gain of each query type, or of each intent."""
    note = (
        f"Held out. Not adjusted for the number of {field}s; no verdict rests on these intervals."
        f"{SHARED_FOLDS if report.is_cross_fitted else ''}"
    )
    named = [(f"(no {field})" if name is None else name, gain) for name, gain in gains]
    title = f"Gain by {'query type' if field == 'type' else field}"
    return _build_gain_table(report, title, (field, "default", "tuned"), named, [note])


def per_type_table(report: TuningReport, result: PerTypeResult) -> Table:
    """Parameters by query type or intent against the default and one set of parameters."""
    field = result.field
    gains = [
        (f"tuned by {field} - default", result.gain),
        (f"tuned by {field} - tuned for all (verdict)", result.over_global),
    ]
    notes = [f"{n}: {format_values(params)}." for n, params in sorted(result.params.items())]
    title = f"Parameters by {CLASS_KEYS[result.key].title}"
    headers = ("held-out queries", "without", f"by {field}")
    return _build_gain_table(report, title, headers, gains, notes, result.verdict)


def parameter_table(report: TuningReport) -> Table:
    """What each parameter was, is now, and would be without each fold."""
    columns = (
        Column("parameter", is_text=True),
        Column("range", is_text=True),
        *(Column(name, is_text=True) for name in ("default", "tuned")),
        *(Column(f"fold {k}", is_optional=True) for k in range(1, len(report.folds) + 1)),
        *map(Column, ("fold spread", "importance", "back at default")),
    )
    rows = tuple(Row(tuple(_parameter_cells(report, p))) for p in report.parameters)
    ratios = ", ".join(parameter.path for parameter in report.parameters if parameter.ratio)
    notes = {
        f"Only the ratio of {ratios} matters. Trials are scaled so that the greatest is 1 (weights "
        "by query type: so that the sum is 1), as far as the ranges allow. The default is shown as "
        "written.": "," in ratios,
        "Fold spread: distance between the values chosen without each fold, as a share of the "
        "range; for a choice, how many folds agree. A wide spread means that the queries do not "
        "settle the parameter.": report.folds,
        "Importance: PED-ANOVA over all trials (Watanabe, Bansal and Hutter 2023). It compares the "
        "best tenth of the trials with the others, so a value that the search soon gave up counts "
        "little.": report.importances,
        "Back at default: change of the mean on the tuning queries with this parameter alone back "
        "at its default; blank = it is there already, or the default has none. Parameters that "
        "replace each other may each lose little alone.": report.ablation_losses,
    }
    long_lists = (p for p in report.parameters if len(p.choices) > MAX_CHOICES)
    choices = (f"Choices of {p.path}: {format_choices(p)}." for p in long_lists)
    shown = (*choices, *(note for note, is_shown in notes.items() if is_shown))
    return Table("Parameters", columns, rows, shown).without_empty_columns()


def _parameter_cells(report: TuningReport, parameter: ParameterInfo) -> Iterator[str]:
    path = parameter.path
    shares = {item.path: item.share for item in report.importances}
    loss = report.ablation_losses.get(path)
    yield from (path, format_range(parameter), format_value(parameter.default))
    yield format_value(report.choice.params.get(path))
    yield from (format_value(fold.params.get(path)) for fold in report.folds)
    yield _format_spread(report, parameter)
    yield format_percent(shares[path]) if path in shares else ""
    yield "" if loss is None else format_number(-loss, signed=True)


def _format_spread(report: TuningReport, parameter: ParameterInfo) -> str:
    values = [fold.params.get(parameter.path) for fold in report.folds]
    if parameter.kind == "choice" and any(value is not None for value in values):
        return f"{max(map(values.count, values))} of {len(values)} agree"
    spread = report.fold_spreads.get(parameter.path)
    return "" if spread is None else format_percent(spread)


def threshold_table(thresholds: ThresholdReport) -> Table:
    """Verdicts of CRAG's thresholds against the truth, on held-out queries."""
    columns = (
        Column("thresholds", is_text=True),
        Column("verdict", is_text=True),
        *map(Column, (f"relevant in the top {thresholds.top}", "none", "share relevant")),
        Column("utility"),
    )
    rows = []
    for name in ("default", "tuned", "min_score"):
        rule = getattr(thresholds, name)
        ends = dict.fromkeys((rule.upper, rule.lower))
        label = f"{name}: {' / '.join(f'{end:.4g}' for end in ends)}"
        utility = format_number(rule.utility)
        for verdict in ("correct", "ambiguous", "incorrect"):
            relevant, others = getattr(rule, verdict)
            share = format_percent(relevant / (relevant + others) if relevant + others else None)
            if verdict != "ambiguous" or len(ends) > 1:
                counts = (f"{relevant:,}", f"{others:,}")
                rows.append(Row((label, verdict, *counts, share, utility)))
            label = utility = ""
    note = (
        "Held-out queries. Utility: 1 for a right verdict, 0 for a wrong one, "
        f"{thresholds.credit:g} for ambiguous. min_score is fitted as a single threshold; what it "
        "drops counts as incorrect."
    )
    title = f"Is there a relevant document? {thresholds.title}"
    return Table(title, columns, tuple(rows), (note,))
