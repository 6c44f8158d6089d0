"""The page of ``fusion-bench export``."""

from __future__ import annotations

from dataclasses import replace

from fusion_bench.evaluation.export_records import ExportReport, ReplayRecord
from fusion_bench.evaluation.report_records import ComparisonResult
from fusion_bench.experiment.dialect import Fidelity
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.answer_texts import COUNTS, DIFFERENCE, format_answer, interval_column
from fusion_bench.report.page import Column, Finding, Page, Section, Tone, make_table
from fusion_bench.util.formatting import format_interval, format_number, pluralize

TONES: dict[Fidelity, Tone] = {
    "exact": "passed",
    "rank-equivalent": "passed",
    "approximate": "warning",
    "unsupported": "failed",
}
MEANINGS: dict[Fidelity, str] = {
    "exact": "equal scores, up to a common factor and the engine's precision",
    "rank-equivalent": "other scores, the same order on any lists",
    "approximate": "another order on some lists",
    "unsupported": "the engine has nothing like it",
}


def build_export_page(report: ExportReport) -> Page:
    """Build the page of an export: what is lost and why, what else to do, and what it costs."""
    changes = map(_describe_changes, report.replays)
    tone: Tone = "plain" if report.fidelity in {"exact", "rank-equivalent"} else "warning"
    findings = [Finding(reason, tone, "reason") for reason in report.reasons]
    findings += [Finding(note, key="note") for note in report.notes]
    if report.not_replayed is not None and report.fidelity == "approximate":
        text = f"Not replayed on data: {report.not_replayed}."
        findings.append(Finding(text, "warning", "not replayed"))
    sections = [Section(findings=(*changes, *findings))]
    if report.replays:
        columns: list[Column[ReplayRecord]] = [
            Column("dataset", lambda replay: replay.dataset, is_text=True),
            Column("queries", lambda replay: f"{replay.queries:,}"),
            Column("system", lambda replay: format_number(replay.system_mean)),
            Column("exported", lambda replay: format_number(replay.export_mean)),
            DIFFERENCE.of(_find_comparison),
            replace(interval_column(report.replays[0].alpha), cell=_format_interval),
            COUNTS.of(_find_comparison),
            Column("answer", _format_answer, is_text=True),
        ]
        measure = display_measure(report.replays[0].comparison.measure)
        note = (
            f"{measure} of your system, and of the system that was written. Difference = "
            "exported - system, paired by query. w/t/l = queries won, tied and lost."
        )
        table = make_table(f"Cost in {measure}", columns, report.replays, notes=(note,))
        sections.append(Section(parts=(table,)))
    title = f"Export: {report.system} to {report.title} {report.version}"
    text = f"{report.fidelity}: {MEANINGS[report.fidelity]}"
    queries = sum(replay.queries for replay in report.replays)
    changed = sum(replay.changed_queries for replay in report.replays)
    if changed:
        text = f"{text}: here {changed:,} of {queries:,} queries change their top"
    elif report.replays and report.fidelity == "approximate":
        text = f"{text}, but on none of the {pluralize(queries, 'query')} here"
    headline = Finding(f"{text}.", TONES[report.fidelity], "fidelity")
    return Page(title, tuple(sections), headline)


def _find_comparison(replay: ReplayRecord) -> ComparisonResult:
    return replay.comparison


def _format_answer(replay: ReplayRecord) -> str:
    return format_answer(replay.comparison.answer, replay.min_gain)


def _format_interval(replay: ReplayRecord) -> str:
    """The interval of the difference; ``n/a`` where no query differs, as it says nothing then."""
    item = replay.comparison
    if not (item.wins or item.losses):
        return "n/a"
    return format_interval(item.low, item.high, signed=True)


def _describe_changes(replay: ReplayRecord) -> Finding:
    """How many queries change their top."""
    total, top = pluralize(replay.queries, "query"), replay.top
    if not (replay.changed_queries or replay.tied_queries):
        return Finding(f"{replay.dataset}: all {total} keep their top {top}.", key="changes")
    text = f"{replay.dataset}: {replay.changed_queries:,} of {total} change their top {top}"
    if replay.changed_queries:
        compared = replay.comparison
        text = (
            f"What is written is another system. {text}, {replay.changed_sets:,} of them have "
            f"other documents there: {display_measure(compared.measure)} "
            f"{format_number(compared.difference, signed=True)}"
        )
    if replay.tied_queries:
        text += f"; {replay.tied_queries:,} more differ only among documents of equal scores"
    return Finding(f"{text}.", "warning" if replay.changed_queries else "plain", "changes")
