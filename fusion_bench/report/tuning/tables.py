"""Tables of a tuning run, as rows of strings that Markdown and the terminal only draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_bench.config.parameters import DIGITS
from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.report.tuning import pareto_table as fronts
from fusion_bench.report.tuning.tuning_records import (
    Gain,
    ParameterInfo,
    ThresholdReport,
    TuningReport,
    Typed,
    Value,
)
from fusion_bench.util.formatting import (
    escape_control_chars,
    format_interval,
    format_number,
    format_p_value,
)
from fusion_bench.util.formatting import format_percent as percent

__all__ = [
    "all_tables",
    "apart",
    "by_type",
    "confusion",
    "described",
    "gains",
    "lost_without",
    "numbers",
    "setting",
    "typed",
]

TONES: dict[str, Tone] = {"ship": "better", "worse": "worse", "too few queries": "warning"}


def all_tables(tuning: TuningReport) -> Iterator[Table]:
    """Every table that has something to show, most important first."""
    yield gains(tuning)
    yield numbers(tuning)
    if tuning.by_type:
        yield by_type(tuning)
    if tuning.typed is not None:
        yield typed(tuning, tuning.typed)
    if tuning.front is not None:
        yield fronts.table(tuning, tuning.front)
    if tuning.thresholds is not None:
        yield confusion(tuning.thresholds)


def covered(tuning: TuningReport) -> str:
    """What an interval is called: ``95 %``."""
    return f"{100 - 100 * tuning.alpha:.6g} %"


def setting(value: Value) -> str:
    """A tuned number or choice; ``-`` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else escape_control_chars(str(value))


def _gain_cells(tuning: TuningReport, gain: Gain) -> tuple[str, ...]:
    return (
        f"{gain.queries:,}",
        format_number(gain.default),
        format_number(gain.tuned),
        format_number(gain.difference, signed=True),
        format_interval(gain.low, gain.high, signed=True),
        format_p_value(gain.p, alpha=tuning.alpha),
        f"{gain.wins:,}/{gain.ties:,}/{gain.losses:,}",
    )


def _gain_columns(tuning: TuningReport, first: str) -> tuple[Column, ...]:
    return (
        Column(first, is_text=True),
        Column("queries", is_optional=True),
        Column("default"),
        Column("tuned"),
        Column("difference"),
        Column(f"{covered(tuning)} interval"),
        Column("p"),
        Column("w/t/l"),
    )


def gains(tuning: TuningReport) -> Table:
    """Default against tuned: where it was chosen, by cross-validation, and held out."""
    rows = [Row(("tuning queries: too good", *_gain_cells(tuning, tuning.tune)))]
    if tuning.nested is not None:
        row = ("nested cross-validation: an estimate", *_gain_cells(tuning, tuning.nested))
        rows.append(Row(row))
    tone = TONES.get(tuning.verdict, "plain")
    rows.append(
        Row(("held-out queries: these decide", *_gain_cells(tuning, tuning.held_out)), tone)
    )
    grouped = tuning.held_out.groups < tuning.held_out.queries
    notes = [
        "Difference = tuned - default, paired by query; "
        f"interval{' by group' if grouped else ''}; p of a paired randomisation test, two-sided; "
        "w/t/l = queries won, tied and lost by the tuned system.",
    ]
    if tuning.nested is not None:
        notes.append(
            "Nested cross-validation runs the whole search again without each fold and judges it "
            "there. Its folds share queries, so its interval is too narrow: it decides nothing."
        )
    return Table(
        f"{tuning.measure}: tuned against default",
        _gain_columns(tuning, "on"),
        tuple(rows),
        tuple(notes),
    )


def numbers(tuning: TuningReport) -> Table:
    """What each parameter was, is now, and would be without each fold."""
    weight = {one.path: one.share for one in tuning.importances}
    columns = [
        Column("parameter", is_text=True),
        Column("range"),
        Column("default"),
        Column("tuned"),
    ]
    columns += [Column(f"fold {k}", is_optional=True) for k in range(1, len(tuning.folds) + 1)]
    if tuning.folds:
        columns.append(Column("fold spread"))
    if weight:
        columns.append(Column("importance"))
    asked = any(one.reset is not None for one in tuning.parameters)
    if asked:
        columns.append(Column("back at default"))
    rows = []
    for parameter in tuning.parameters:
        path = parameter.path
        cells = [escape_control_chars(path), _range(parameter), setting(parameter.default)]
        cells.append(setting(tuning.choice.params.get(path)))
        cells += [setting(fold.params.get(path)) for fold in tuning.folds]
        if tuning.folds:
            cells.append(_spread(tuning, parameter))
        if weight:
            cells.append(percent(weight.get(path)))
        if asked:
            lost = lost_without(tuning, parameter)
            cells.append("-" if lost is None else format_number(-lost, signed=True))
        rows.append(Row(tuple(cells)))
    return Table("The numbers", tuple(columns), tuple(rows), tuple(_number_notes(tuning)))


def lost_without(tuning: TuningReport, parameter: ParameterInfo) -> float | None:
    """What the choice loses with this number alone back at its default, on the tuning queries."""
    return None if parameter.reset is None else tuning.tune.tuned - parameter.reset


def _number_notes(tuning: TuningReport) -> Iterator[str]:
    ratios = [escape_control_chars(one.path) for one in tuning.parameters if one.ratio]
    if len(ratios) > 1:
        yield (
            f"Of {', '.join(ratios[:-1])} and {ratios[-1]} only the ratio counts: twice all of "
            "them is the same system. So every trial is shown with the greatest at 1 (weights by "
            "query type: with the sum 1), or as near to it as the ranges allow; the default stays "
            "as it is written."
        )
    if tuning.folds:
        yield (
            "Fold spread: how far the numbers lie apart that were chosen without each fold, as a "
            "share of the range (for a choice: how many folds agree). Wide spread and little "
            "gain: the queries do not care."
        )
    if tuning.importances:
        yield (
            "Importance: PED-ANOVA over all trials (Watanabe, Bansal and Hutter 2023): where the "
            "best tenth of the trials have other values than the rest. It is about where this "
            "search went: a value that it soon gave up counts for little, however bad it is."
        )
    if any(one.reset is not None for one in tuning.parameters):
        yield (
            "Back at default: what the tuned system's mean on the tuning queries changes by with "
            "this number alone back at its default (- = it is there already, or the default has "
            "no such number). Numbers that stand in for each other can each lose little alone."
        )


def _range(parameter: ParameterInfo) -> str:
    if parameter.kind == "choice":
        return ", ".join(setting(one) for one in parameter.choices)
    scale = " log" if parameter.log else ""
    return f"{setting(parameter.low)} to {setting(parameter.high)}{scale}"


def _spread(tuning: TuningReport, parameter: ParameterInfo) -> str:
    chosen = [fold.params.get(parameter.path) for fold in tuning.folds]
    if parameter.kind == "choice" and any(value is not None for value in chosen):
        most = max(chosen.count(value) for value in chosen)
        return f"{most} of {len(chosen)} agree"
    found = apart(tuning, parameter)
    return "-" if found is None else percent(found)


def apart(tuning: TuningReport, parameter: ParameterInfo) -> float | None:
    """How far apart the folds' numbers lie, as a share of the range; None where none has one."""
    if parameter.kind == "choice":
        return None
    there = [fold.params.get(parameter.path) for fold in tuning.folds]
    places = [parameter.range.unit_position(value) for value in there if value is not None]
    return max(places) - min(places) if places else None


def by_type(tuning: TuningReport) -> Table:
    """The held-out gain of each query type."""
    rows = []
    for one in tuning.by_type:
        name = "(no type)" if one.type is None else escape_control_chars(one.type)
        rows.append(Row((name, *_gain_cells(tuning, one.gain))))
    note = (
        "Held-out queries only. Not adjusted for the number of types: a look at where the gain "
        "lies, not a verdict on a type."
    )
    return Table("By query type", _gain_columns(tuning, "type"), tuple(rows), (note,))


def typed(tuning: TuningReport, found: Typed) -> Table:
    """Numbers by query type against the default and against one set of numbers for all."""
    rows = [
        Row(("tuned by type - default", *_gain_cells(tuning, found.gain))),
        Row(
            ("tuned by type - tuned for all: decides", *_gain_cells(tuning, found.over_global)),
            TONES.get(found.verdict, "plain"),
        ),
    ]
    notes = [
        f"{escape_control_chars(name)}: {described(params)}."
        for name, params in sorted(found.params.items())
    ]
    columns = list(_gain_columns(tuning, "held-out queries"))
    columns[2] = Column("without")
    columns[3] = Column("by type")
    return Table("Numbers by query type", tuple(columns), tuple(rows), tuple(notes))


def confusion(found: ThresholdReport) -> Table:
    """Verdicts of CRAG's thresholds against the truth, on held-out queries."""
    columns = (
        Column("thresholds", is_text=True),
        Column("verdict", is_text=True),
        Column(f"relevant in the top {found.top}"),
        Column("none"),
        Column("share relevant"),
        Column("utility"),
    )
    rows = []
    for name, rule in (
        ("default", found.default),
        ("tuned", found.tuned),
        ("min_score", found.min_score),
    ):
        at = f"{name}: {rule.upper:.4g} / {rule.lower:.4g}"
        if name == "min_score":
            at = f"min_score {rule.upper:.4g}"
        for verdict in ("correct", "ambiguous", "incorrect"):
            there, absent = getattr(rule, verdict)
            if name == "min_score" and verdict == "ambiguous":
                continue
            share = there / (there + absent) if there + absent else None
            worth = format_number(rule.utility) if verdict == "correct" else ""
            cells = (at if verdict == "correct" else "", verdict, f"{there:,}", f"{absent:,}")
            rows.append(Row((*cells, percent(share), worth)))
    note = (
        f"Held-out queries. Utility: 1 for a right verdict, 0 for a wrong one, {found.credit:g} "
        "for ambiguous. min_score is fitted as one threshold: what it drops is called incorrect."
    )
    return Table("Is there a relevant document?", columns, tuple(rows), (note,))


def described(params: Mapping[str, Value]) -> str:
    """``k 12, weights.dense 0.7``: a choice in one line."""
    return ", ".join(f"{path} {setting(value)}" for path, value in params.items()) or "nothing"
