"""Tables of a tuning run: parameters, trials, gains, thresholds, the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fusion_bench.config.query_types import CLASS_KEYS
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report import answer_texts
from fusion_bench.report import tuning_records as records
from fusion_bench.report.data_warnings import describe_columns, judged_columns, note_unknown_ends
from fusion_bench.report.page import Column, Table, Tone, columns_of, make_columns, make_table
from fusion_bench.report.tuning_texts import (
    EFFORT_NAMES,
    MAX_CHOICES,
    format_choices,
    format_paired,
    format_range,
    format_value,
)
from fusion_bench.stats.unjudged import CompletionBounds
from fusion_bench.util.formatting import format_number, format_p_value, format_percent

#: What a point may cost: of 1,000 queries, per query, and per query at the 95th percentile.
AMOUNTS = {"cost": "cost of 1,000 queries", "seconds": "seconds per query", "slow": "p95 seconds"}


def pareto_table(report: records.TuningReport, front: records.ParetoFront) -> Table:
    """The efficient points, the default and the choice, with their held-out values.

    An effort that no point knows has no column.
    """
    # Without a reranker everything is free: that says nothing.
    reranked = [point for point in front.points if point.depth]
    amounts = {
        amount: header
        for amount, header in AMOUNTS.items()
        if any(getattr(point, amount) is not None for point in reranked)
    }
    points = [point for point in front.points if point.is_shown]
    rerankers: list[Column[records.ParetoPoint]] = [
        Column("reranker", lambda point: point.reranker or "none", is_text=True)
    ]
    columns: list[Column[records.ParetoPoint]] = [
        *(rerankers if len(front.efforts) > 1 else ()),
        Column("rerank depth", lambda point: f"{point.depth:,}"),
        Column("candidates per query", lambda p: f"{p.candidates:.1f}", is_optional=bool(amounts)),
        *(
            replace(column, is_optional=column.header == AMOUNTS["slow"])
            for column in make_columns(amounts, _format_effort)
        ),
        Column(
            f"{display_measure(report.measure)}, tuning", lambda point: format_number(point.value)
        ),
        Column("held out", lambda point: format_number(point.held_out)),
        *judged_columns(points, lambda point: point.bounds),
        Column("held out: - default", lambda point: format_paired(point.over_default)),
        Column("held out: - best", lambda point: format_paired(point.over_best)),
        Column("note", _describe_point, is_text=True),
    ]
    note = (
        "Each row is the best system of its depth on the tuning queries. Nothing with less effort "
        f"({' and '.join(EFFORT_NAMES[axis] for axis in front.axes)}) is as good there, except "
        "beside rows marked 'not efficient'. Held out: paired intervals against the default and "
        "against the best row; those of one column hold together."
    )
    return make_table(
        "Quality against effort",
        columns,
        points,
        notes=(note, *describe_columns(columns), *effort_sources(front)),
        tone=lambda point: "plain" if point.efficient else "warning",
    ).without_empty_columns()


def _format_effort(amount: str, point: records.ParetoPoint) -> str:
    return _format_amount(getattr(point, amount))


def _describe_point(point: records.ParetoPoint) -> str:
    return ", ".join((*point.roles, *(() if point.efficient else ("not efficient",))))


def _format_amount(value: float | None, unknown: str = "") -> str:
    return unknown if value is None or math.isnan(value) else f"{value:.4g}"


def effort_sources(front: records.ParetoFront) -> Iterator[str]:
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


def tuning_tables(report: records.TuningReport) -> Iterator[Table]:
    """Every table that has something to show, the most important first."""
    yield gain_table(report)
    if report.held_out_bounds:
        known = [
            (queries if i == 0 else "", system, bounds)
            for queries, systems in report.held_out_bounds
            for i, (system, bounds) in enumerate(systems.items())
        ]
        columns: list[Column[tuple[str, str, CompletionBounds]]] = [
            Column("held-out queries", lambda row: row[0], is_text=True),
            Column("system", lambda row: row[1], is_text=True),
            *judged_columns(known, lambda row: row[2]),
        ]
        unknown = note_unknown_ends((report.measure, bounds) for _, _, bounds in known)
        title = f"{display_measure(report.measure)}: judged documents"
        yield make_table(title, columns, known, notes=(*describe_columns(columns), *unknown))
    if report.floor:
        yield _floor_table(report)
    yield parameter_table(report)
    for field, gains in report.class_gains.items():
        if gains:
            note = f"Held out. Intervals hold for all {field}s together; no verdict rests on them."
            named = [(f"(no {field})" if name is None else name, gain) for name, gain in gains]
            title = f"Gain by {'query type' if field == 'type' else field}"
            yield _build_gain_table(report, title, (field, "default", "tuned"), named, [note])
    if report.per_type is not None:
        yield per_type_table(report, report.per_type)
    if report.front is not None:
        yield pareto_table(report, report.front)
    yield from map(_threshold_table, report.thresholds)


def _build_gain_table(
    report: records.TuningReport,
    title: str,
    headers: tuple[str, str, str],
    gains: Sequence[tuple[str, records.Gain]],
    notes: Sequence[str],
    verdict: str | None = None,
) -> Table:
    """A row a gain; the verdict is that of the last one."""
    first, default, tuned = headers
    values: tuple[Column[records.Gain], ...] = (
        Column("queries", lambda gain: f"{gain.queries:,}", is_optional=True),
        Column(default, lambda gain: format_number(gain.default)),
        Column(tuned, lambda gain: format_number(gain.tuned)),
    )
    columns: list[Column[tuple[str, records.Gain]]] = [
        Column(first, lambda pair: pair[0], is_text=True),
        *columns_of((*values, *_tested_columns(report), answer_texts.COUNTS), lambda pair: pair[1]),
    ]
    tone = TONES.get(verdict, "plain")
    return make_table(
        *(title, columns, gains),
        notes=notes,
        tone=lambda pair: tone if pair is gains[-1] else "plain",
    )


def _tested_columns(report: records.TuningReport) -> Iterator[Column[Any]]:
    """A difference, its interval and its p."""
    yield from (answer_texts.DIFFERENCE, answer_texts.interval_column(report.alpha))
    yield Column("p", lambda row: format_p_value(row.p, alpha=report.alpha))


def gain_table(report: records.TuningReport) -> Table:
    """Default against tuned: on the tuning queries, by cross-validation, and held out."""
    is_grouped = report.held_out.groups < report.held_out.queries
    effect = report.held_out.design_effect
    by_group = f", interval by group{'' if effect is None else f' (variance × {effect:.2g})'}"
    gains = [("tuning queries (biased)", report.tune)]
    notes = [
        f"Difference = tuned - default, paired by query{by_group * is_grouped}. p is two-sided. "
        "p and interval come from queries or groups that are drawn anew; n/a = too few differ. "
        "w/t/l = queries won, tied and lost by the tuned system."
    ]
    if report.nested is not None:
        gains.append(("nested cross-validation", report.nested))
        notes.append(
            "Nested cross-validation repeats the whole search without each fold and evaluates it "
            "there. Its folds share queries, so its interval is too narrow for a verdict."
        )
    gains.append(("held out (verdict)", report.held_out))
    title = f"{display_measure(report.measure)}: tuned against default"
    headers = ("queries from", "default", "tuned")
    return _build_gain_table(report, title, headers, gains, notes, report.verdict)


def _floor_table(report: records.TuningReport) -> Table:
    """Every untuned system and every single source against the tuned system, held out."""
    least = format_number(report.min_gain)
    columns: list[Column[records.FloorRow]] = [
        Column("without tuning", lambda row: row.name, is_text=True),
        Column("kind", lambda row: row.kind, is_text=True),
        Column("mean", lambda row: format_number(row.mean)),
        *judged_columns(report.floor, lambda row: row.bounds),
        *_tested_columns(report),
        Column(
            "against the tuned system",
            lambda row: answer_texts.name_verdict(row.answer).replace("min_gain", least),
            is_text=True,
        ),
    ]
    note = (
        "The same held-out queries. Difference = this - tuned; p and intervals hold for all "
        f"{len(report.floor)} rows together."
    )
    return make_table(
        f"{display_measure(report.measure)}: without tuning",
        columns,
        report.floor,
        notes=(note, *describe_columns(columns)),
        tone=lambda row: "warning" if row.name in report.first_group else "plain",
        is_best=lambda row: row.name in report.first_group,
    )


def per_type_table(report: records.TuningReport, result: records.PerTypeResult) -> Table:
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


def parameter_table(report: records.TuningReport) -> Table:
    """What each parameter was, is now, and would be without each fold."""
    folds = {k: f"fold {k + 1}" for k in range(len(report.folds))}
    tuned, shares = report.choice.params, {each.path: each.share for each in report.importances}
    losses = report.ablation_losses
    columns: list[Column[records.ParameterInfo]] = [
        Column("parameter", lambda p: p.path, is_text=True),
        Column("range", format_range, is_text=True),
        Column("default", lambda p: format_value(p.default), is_text=True),
        Column("tuned", lambda p: format_value(tuned.get(p.path)), is_text=True),
        *make_columns(
            folds, lambda k, p: format_value(report.folds[k].params.get(p.path)), is_optional=True
        ),
        Column("fold spread", partial(_format_spread, report)),
        Column[float]("importance", format_percent).of(lambda p: shares.get(p.path)),
        Column[float]("back at default", lambda loss: format_number(-loss, signed=True)).of(
            lambda p: losses.get(p.path)
        ),
    ]
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
        "replace each other may each lose little alone.": losses,
    }
    long_lists = (p for p in report.parameters if len(p.choices) > MAX_CHOICES)
    choices = (f"Choices of {p.path}: {format_choices(p)}." for p in long_lists)
    shown = (*choices, *(note for note, is_shown in notes.items() if is_shown))
    table = make_table("Parameters", columns, report.parameters, notes=shown)
    return table.without_empty_columns()


def format_values(values: Mapping[str, records.Value]) -> str:
    """``k 12, weights.dense 0.7``: values of several parameters in one line."""
    pairs = [f"{path} {format_value(value)}" for path, value in values.items()]
    return ", ".join(pairs) or "nothing"


def _format_spread(report: records.TuningReport, parameter: records.ParameterInfo) -> str:
    values = [fold.params.get(parameter.path) for fold in report.folds]
    if parameter.kind == "choice" and any(value is not None for value in values):
        return f"{max(map(values.count, values))} of {len(values)} agree"
    spread = report.fold_spreads.get(parameter.path)
    return "" if spread is None else format_percent(spread)


def _threshold_table(thresholds: records.ThresholdReport) -> Table:
    """Verdicts of CRAG's thresholds against the truth, on held-out queries."""
    rows: list[tuple[str, str, str, tuple[int, int]]] = []
    for name in ("default", "tuned", "min_score"):
        rule = getattr(thresholds, name)
        ends = dict.fromkeys((rule.upper, rule.lower))
        first = (f"{name}: {' / '.join(f'{end:.4g}' for end in ends)}", format_number(rule.utility))
        for verdict in ("correct", "ambiguous", "incorrect"):
            if verdict != "ambiguous" or len(ends) > 1:
                rows.append((*first, verdict, getattr(rule, verdict)))
            first = ("", "")
    columns: list[Column[tuple[str, str, str, tuple[int, int]]]] = [
        Column("thresholds", lambda row: row[0], is_text=True),
        Column("verdict", lambda row: row[2], is_text=True),
        Column(f"relevant in the top {thresholds.top}", lambda row: f"{row[3][0]:,}"),
        Column("none", lambda row: f"{row[3][1]:,}"),
        Column(
            "share relevant",
            lambda row: format_percent(row[3][0] / sum(row[3]) if sum(row[3]) else None),
        ),
        Column("utility", lambda row: row[1]),
    ]
    note = (
        "Held-out queries. Utility: 1 for a right verdict, 0 for a wrong one, "
        f"{thresholds.credit:g} for ambiguous. min_score is fitted as a single threshold; what it "
        "drops counts as incorrect."
    )
    title = f"Is there a relevant document? {thresholds.title}"
    return make_table(title, columns, rows, notes=(note,))
