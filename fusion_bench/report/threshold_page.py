"""The thresholds of an experiment's signals as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from fusion_bench.evaluation.thresholds import (
    CRAG_SCORE,
    SignalResult,
    ThresholdCollection,
    ThresholdReport,
)
from fusion_bench.experiment.abstain import FUSED_TOP, LIST_TOP
from fusion_bench.report.answer_texts import (
    compare_with_second,
    describe_promise,
    describe_share,
    format_share,
)
from fusion_bench.report.page import (
    Column,
    Figure,
    Finding,
    Page,
    Section,
    join_decisions,
    make_safe_name,
    make_table,
)
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

#: Said wherever a mask made the unanswerable queries.
MASKED = "masked: easier than life, no near misses were added"


def build_threshold_page(report: ThresholdReport, plot_format: str | None = "png") -> Page:
    """Which signals can carry a threshold, the promised threshold, and each signal's figures.

    Args:
        report: What was measured.
        plot_format: Of the picture; None = no picture.
    """
    limit = format_share(float(report.settings["false_answers"]))
    headline = join_decisions("Thresholds", [_decide(each, limit) for each in report.collections])
    sections = [_build_section(each, limit, plot_format) for each in report.collections]
    facts = {
        **report.provenance.facts,
        **{f"fingerprint of {each.name}": each.fingerprint for each in report.collections},
    }
    provenance = Section("Provenance", summary=report.provenance.origin, facts=facts)
    return Page(f"Thresholds: {report.name}", tuple(sections), headline, provenance)


def _best(signals: list[SignalResult]) -> SignalResult | None:
    """The signal that keeps most."""
    return max(signals, key=lambda each: each.kept.share or 0.0, default=None)


def _decide(collection: ThresholdCollection, limit: str) -> Finding:
    """Which signal can carry a threshold, which cannot, and what fusing did to those of lists."""
    usable = _best([each for each in collection.signals if each.usability == "usable"])
    best = _best([*collection.signals]) or collection.signals[0]
    fused = [each for each in collection.signals if each.signal == FUSED_TOP]
    weak = [each for each in fused if each.usability == "cannot carry a threshold"]
    lines = []
    if usable is not None:
        text = (
            f"{usable.label} can carry a threshold on {collection.name}: at {limit} false answers "
            f"it keeps {describe_share(usable.kept)} of the answerable queries."
        )
        lines += (
            [f"{weak[0].label} cannot: it keeps {describe_share(weak[0].kept)}."] if weak else []
        )
    else:
        can = "can" if best.usability == "cannot carry a threshold" else "is shown to"
        text = (
            f"No signal {can} carry a threshold on {collection.name}: at {limit} false answers the "
            f"best, {best.label}, keeps {describe_share(best.kept)} of the answerable queries."
        )
    lines += [*_compare_with_lists(collection, fused), *_promise(collection, limit)]
    if collection.is_masked:
        lines.append(f"The unanswerable queries are {MASKED}.")
    return Finding(text, "plain" if usable else "warning", "decision", tuple(lines))


def _compare_with_lists(
    collection: ThresholdCollection, fused: list[SignalResult]
) -> Iterator[str]:
    """What fusing did to the signals of its lists, for the first system."""
    lists = [each for each in collection.signals if each.signal.startswith(LIST_TOP)]
    best = _best(lists)
    if fused and best is not None:
        first = fused[0]
        change = "loses" if (first.kept.share or 0) < (best.kept.share or 0) else "does not lose"
        yield (
            f"Fusing {change} what the lists know: {first.label} keeps "
            f"{format_share(first.kept.share)}, {best.label} alone {format_share(best.kept.share)}."
        )


def _promise(collection: ThresholdCollection, limit: str) -> Iterator[str]:
    """The threshold that is promised, or why there is none."""
    chosen = collection.chosen
    if chosen is None:
        yield f"No threshold is promised: {collection.reason}."
        return
    how = "you named it" if chosen.is_stated else "chosen on the other half of the queries"
    unit = (
        "query" if collection.units == collection.answerable + collection.unanswerable else "group"
    )
    yield describe_promise(chosen, limit, f"{how}; {pluralize(chosen.calibrating, unit)}")
    if chosen.signal == CRAG_SCORE and chosen.threshold is not None:
        upper = (math.floor(chosen.threshold * 1e6) + 1) / 1e6  # at or above it is 'correct'
        lower, rarely = "", f"at most {limit} of unanswerable queries are 'correct'"
        if chosen.crag_lower is not None and chosen.crag_lower > 0:
            least = (math.ceil(chosen.crag_lower * 1e6) - 1) / 1e6  # at or below it is 'incorrect'
            lower = f", lower: {min(least, upper):.6f}"
            rarely += f", and at most {limit} of answerable ones 'incorrect'"
        yield f"Write crag: {{upper: {upper:.6f}{lower}}}: then {rarely}."
    if chosen.against is not None:
        yield compare_with_second(chosen.against)


def _format_threshold(signal: SignalResult) -> str:
    return "–" if signal.threshold is None else f"{signal.threshold:.4g}"


COLUMNS: tuple[Column[SignalResult], ...] = (
    Column("signal", lambda each: each.label, is_text=True, is_name=True),
    Column("kept", lambda each: describe_share(each.kept)),
    Column("with an answer", lambda each: format_share(each.found.share), is_optional=True),
    Column("AUC", lambda each: f"{each.auc:.2f} [{each.auc_low:.2f}, {each.auc_high:.2f}]"),
    Column("τ", _format_threshold, is_optional=True),
    Column("carries a threshold", lambda each: each.usability, is_text=True),
)


def _build_section(collection: ThresholdCollection, limit: str, plot_format: str | None) -> Section:
    ranked = sorted(collection.signals, key=lambda each: -(each.kept.share or 0.0))
    notes = [
        f"kept = answerable queries that are answered if at most {limit} of the unanswerable ones "
        "are, with 95 % confidence. [] = 95 % interval.",
        "with an answer = of these, those with a relevant document in the first ten results.",
        "AUC = how likely an answerable query has a greater signal than an unanswerable one.",
    ]
    table = make_table(
        "Signals", COLUMNS, ranked, notes=notes, is_kept=lambda each: each.usability == "usable"
    )
    unanswerable = (
        f"{collection.unanswerable:,} without{' (masked)' if collection.is_masked else ''}"
    )
    figure = Figure(
        file=f"threshold-{make_safe_name(collection.name)}.{plot_format}",
        title="Answered queries against false answers",
        caption="Each curve is a signal. Right is more false answers, up is more answers kept.",
        draw=partial(_draw, collection),
    )
    return Section(
        title=f"{collection.name} {collection.version}: "
        f"{pluralize(collection.answerable, 'query')} with an answer, {unanswerable}",
        parts=(table, *([figure] if plot_format else [])),
    )


def _draw(collection: ThresholdCollection) -> Drawing:
    from fusion_bench.report.plots.studies import draw_threshold_curves  # late: Matplotlib

    return draw_threshold_curves(collection)
