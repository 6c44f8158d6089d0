"""Tables of a tuning run."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.report.tuning.format_values import format_range, format_value, format_values
from fusion_bench.report.tuning.pareto_table import pareto_table
from fusion_bench.report.tuning_records import (
    Gain,
    ParameterInfo,
    PerTypeResult,
    ThresholdReport,
    ThresholdRule,
    TuningReport,
)
from fusion_bench.util.formatting import (
    format_coverage,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
)

TONES: dict[str, Tone] = {"ship": "better", "worse": "worse", "too few queries": "warning"}


def tuning_tables(report: TuningReport) -> Iterator[Table]:
    """Every table that has something to show, the most important first."""
    yield gain_table(report)
    yield parameter_table(report)
    if report.by_type:
        yield type_gain_table(report)
    if report.per_type is not None:
        yield per_type_table(report, report.per_type)
    if report.front is not None:
        yield pareto_table(report, report.front)
    if report.thresholds is not None:
        yield threshold_table(report.thresholds)


def _gain_columns(report: TuningReport, *headers: str) -> tuple[Column, ...]:
    first, default, tuned = headers
    return (
        Column(first, is_text=True),
        Column("queries", is_optional=True),
        Column(default),
        Column(tuned),
        Column("difference"),
        Column(f"{format_coverage(report.alpha)} interval"),
        Column("p"),
        Column("w/t/l"),
    )


def _gain_row(report: TuningReport, label: str, gain: Gain, tone: Tone = "plain") -> Row:
    cells = (
        label,
        f"{gain.queries:,}",
        format_number(gain.default),
        format_number(gain.tuned),
        format_number(gain.difference, signed=True),
        format_interval(gain.low, gain.high, signed=True),
        format_p_value(gain.p, alpha=report.alpha),
        f"{gain.wins:,}/{gain.ties:,}/{gain.losses:,}",
    )
    return Row(cells, tone)


def gain_table(report: TuningReport) -> Table:
    """Default against tuned: on the tuning queries, by cross-validation, and held out."""
    rows = [_gain_row(report, "tuning queries (biased)", report.tune)]
    is_grouped = report.held_out.groups < report.held_out.queries
    notes = [
        f"Difference = tuned - default, paired by query{', interval by group' * is_grouped}. p: "
        "paired two-sided randomization test. w/t/l = queries won, tied and lost by the tuned "
        "system.",
    ]
    if report.nested is not None:
        rows.append(_gain_row(report, "nested cross-validation (estimate)", report.nested))
        notes.append(
            "Nested cross-validation repeats the whole search without each fold and evaluates it "
            "there. Its folds share queries, so its interval is too narrow for a verdict."
        )
    tone = TONES.get(report.verdict, "plain")
    rows.append(_gain_row(report, "held-out queries (verdict)", report.held_out, tone))
    columns = _gain_columns(report, "queries from", "default", "tuned")
    return Table(f"{report.measure}: tuned against default", columns, tuple(rows), tuple(notes))


def type_gain_table(report: TuningReport) -> Table:
    """The held-out gain of each query type."""
    rows = [
        _gain_row(report, "(no type)" if item.type is None else item.type, item.gain)
        for item in report.by_type
    ]
    note = (
        "Held-out queries only. Intervals are not adjusted for the number of types; no verdict "
        "rests on them."
    )
    columns = _gain_columns(report, "type", "default", "tuned")
    return Table("Gain by query type", columns, tuple(rows), (note,))


def per_type_table(report: TuningReport, result: PerTypeResult) -> Table:
    """Parameters by query type against the default and against one set of parameters."""
    rows = (
        _gain_row(report, "tuned by type - default", result.gain),
        _gain_row(
            report,
            "tuned by type - tuned for all (verdict)",
            result.over_global,
            TONES.get(result.verdict, "plain"),
        ),
    )
    notes = tuple(f"{n}: {format_values(params)}." for n, params in sorted(result.params.items()))
    columns = _gain_columns(report, "held-out queries", "without", "by type")
    return Table("Parameters by query type", columns, rows, notes)


def parameter_table(report: TuningReport) -> Table:
    """What each parameter was, is now, and would be without each fold."""
    columns = [
        Column("parameter", is_text=True),
        *(Column(name) for name in ("range", "default", "tuned")),
        *(Column(f"fold {k}", is_optional=True) for k in range(1, len(report.folds) + 1)),
        *([Column("fold spread")] if report.folds else ()),
        *([Column("importance")] if report.importances else ()),
        *([Column("back at default")] if report.ablation_losses else ()),
    ]
    rows = tuple(Row(tuple(_parameter_cells(report, p))) for p in report.parameters)
    return Table("Parameters", tuple(columns), rows, tuple(_parameter_notes(report)))


def _parameter_cells(report: TuningReport, parameter: ParameterInfo) -> Iterator[str]:
    path = parameter.path
    yield from (path, format_range(parameter), format_value(parameter.default))
    yield format_value(report.choice.params.get(path))
    yield from (format_value(fold.params.get(path)) for fold in report.folds)
    if report.folds:
        yield _format_spread(report, parameter)
    if report.importances:
        yield format_percent({item.path: item.share for item in report.importances}.get(path))
    if report.ablation_losses:
        loss = report.ablation_losses.get(path)
        yield "-" if loss is None else format_number(-loss, signed=True)


def _format_spread(report: TuningReport, parameter: ParameterInfo) -> str:
    values = [fold.params.get(parameter.path) for fold in report.folds]
    if parameter.kind == "choice" and any(value is not None for value in values):
        most = max(values.count(value) for value in values)
        return f"{most} of {len(values)} agree"
    spread = report.fold_spreads.get(parameter.path)
    return "-" if spread is None else format_percent(spread)


def _parameter_notes(report: TuningReport) -> Iterator[str]:
    ratios = [parameter.path for parameter in report.parameters if parameter.ratio]
    if len(ratios) > 1:
        yield (
            f"Only the ratio of {', '.join(ratios[:-1])} and {ratios[-1]} matters. Trials are "
            "scaled so that the greatest is 1 (weights by query type: so that the sum is 1), as "
            "far as the ranges allow. The default is shown as written."
        )
    if report.folds:
        yield (
            "Fold spread: distance between the values chosen without each fold, as a share of the "
            "range; for a choice, how many folds agree. A wide spread with a small gain means that "
            "the parameter hardly matters."
        )
    if report.importances:
        yield (
            "Importance: PED-ANOVA over all trials (Watanabe, Bansal and Hutter 2023). It compares "
            "the best tenth of the trials with the others, so a value that the search soon gave up "
            "counts little."
        )
    if report.ablation_losses:
        yield (
            "Back at default: change of the mean on the tuning queries with this parameter alone "
            "back at its default; - = it is there already, or the default has none. Parameters "
            "that replace each other may each lose little alone."
        )


def threshold_table(thresholds: ThresholdReport) -> Table:
    """Verdicts of CRAG's thresholds against the truth, on held-out queries."""
    columns = (
        Column("thresholds", is_text=True),
        Column("verdict", is_text=True),
        Column(f"relevant in the top {thresholds.top}"),
        Column("none"),
        Column("share relevant"),
        Column("utility"),
    )
    rules = {
        f"default: {_format_rule(thresholds.default)}": thresholds.default,
        f"tuned: {_format_rule(thresholds.tuned)}": thresholds.tuned,
    }
    rows = [row for label, rule in rules.items() for row in _rule_rows(label, rule)]
    label = f"min_score {thresholds.min_score.upper:.4g}"
    rows += [row for row in _rule_rows(label, thresholds.min_score) if row.cells[1] != "ambiguous"]
    note = (
        "Held-out queries. Utility: 1 for a right verdict, 0 for a wrong one, "
        f"{thresholds.credit:g} for ambiguous. min_score is fitted as a single threshold; what it "
        "drops counts as incorrect."
    )
    return Table("Is there a relevant document?", columns, tuple(rows), (note,))


def _format_rule(rule: ThresholdRule) -> str:
    return f"{rule.upper:.4g} / {rule.lower:.4g}"


def _rule_rows(label: str, rule: ThresholdRule) -> Iterator[Row]:
    """One row a verdict; label and utility beside the first."""
    counts = {
        "correct": rule.correct,
        "ambiguous": rule.ambiguous,
        "incorrect": rule.incorrect,
    }
    for verdict, (relevant, others) in counts.items():
        total = relevant + others
        share = format_percent(relevant / total if total else None)
        is_first = verdict == "correct"
        utility = format_number(rule.utility) if is_first else ""
        label_cell = label if is_first else ""
        yield Row((label_cell, verdict, f"{relevant:,}", f"{others:,}", share, utility))
