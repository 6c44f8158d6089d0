"""Whether fusing pays: every fusion against every single source."""

from __future__ import annotations

from fusion_bench.evaluation.fusion_systems import has_idle_reranker
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.fusion_result import FusionResult
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.judge_line import format_judge_line
from fusion_bench.report.page import Finding, Tone
from fusion_bench.util.formatting import (
    format_coverage,
    format_difference,
    format_number,
    format_p_value,
    pluralize,
)

TONES: dict[str, Tone] = {
    "pays": "better",
    "loses": "worse",
    "not shown": "plain",
    "unjudged decide": "warning",
}


def fusion_finding(report: Report, collection: Collection) -> Finding | None:
    """Whether fusion pays; None where there is no fusion, or no source alone."""
    result = collection.fusion
    if result is None:
        return None
    label = "fusion with a reranker" if result.is_reranked else "fusion"
    single = "the single source" if result.sources == 1 else "every single source"
    claims = {
        "pays": f"{label.capitalize()} pays: {result.fusion} is better than {single}.",
        "loses": f"{label.capitalize()} loses: the source {result.source} alone is better than "
        f"{'the fusion' if result.fusions == 1 else f'all {result.fusions:,} fusions'}.",
        "not shown": f"Whether {label} pays is not shown.",
        "unjudged decide": f"Unjudged documents decide whether {label} pays.",
    }
    text = f"{claims[result.verdict]} {_describe_pair(report, result)}"
    if result.unjudged is not None:
        pair = " against ".join(result.contradicted)
        text += f" They contradict it in {pair}: {result.unjudged.description}. "
        text += f"Judge these first: {format_judge_line(report.provenance.source, result.fusion)}."
    if result.is_reranked:
        text += " No fusion without a reranker was evaluated."
    if has_idle_reranker(collection.system(result.fusion).config):
        text += f" In {result.fusion} the reranker weighs 0."
    return Finding(text, TONES[result.verdict], "fusion")


def _describe_pair(report: Report, result: FusionResult) -> str:
    """The means of the fusion and the source, and their difference."""
    means = f"{format_number(result.fusion_mean)} against {format_number(result.source_mean)}"
    difference = format_difference(result.difference, result.low, result.high)
    p = format_p_value(result.p_adjusted, alpha=report.alpha)
    family = pluralize(result.fusions * result.sources, "comparison")
    return (
        f"{result.fusion} against {result.source}: {means} ({difference}, "
        f"{format_coverage(report.alpha)} interval, adjusted p {p}; {family}, fusions × sources)."
    )
