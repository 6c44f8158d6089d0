"""Whether fusing pays: every fusion against every single source."""

from __future__ import annotations

from fusion_bench.evaluation.fusion_systems import has_idle_reranker
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.fusion import FusionResult
from fusion_bench.experiment.system import System
from fusion_bench.report.judging.judge_line import JudgePlace, format_judge_line, format_pool_line
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
        "pays": f"{label.capitalize()} pays: {result.fusion} is better than {single}"
        f"{collection.condition}.",
        "loses": f"{label.capitalize()} loses: the source {result.source} alone is better than "
        f"{'the fusion' if result.fusions == 1 else f'all {result.fusions:,} fusions'}"
        f"{collection.condition}.",
        "not shown": f"Whether {label} pays is not shown.",
        "unjudged decide": f"Unjudged documents decide whether {label} pays.",
    }
    text = f"{claims[result.verdict]} {_describe_pair(report, result)}"
    if result.unjudged is not None:
        pair = " against ".join(result.contradicted)
        text += f" They decide it in {pair}: {result.unjudged.description}."
    if result.is_reranked:
        text += " No fusion without a reranker was evaluated."
    if has_idle_reranker(collection.system(result.fusion).config):
        text += f" In {result.fusion} the reranker weighs 0."
    if result.unjudged is not None:
        text += f" Judge these first: {_judge_line(report, collection, *result.contradicted)}"
    return Finding(text, TONES[result.verdict], "fusion")


def _judge_line(report: Report, collection: Collection, fusion: str, source: str) -> str:
    """The comparison of both where a system is the source alone; else what the fusion returns."""
    place = JudgePlace.of_report(report.provenance, collection.name, len(report.collections))
    plain = System(name=source, runs=(source,)).model_dump(mode="json", exclude={"name"})
    for row in collection.ranked_systems:
        config = {key: value for key, value in (row.config or {}).items() if key != "name"}
        if config == plain:
            return format_judge_line(place, fusion, row.name)
    return format_pool_line(place, fusion)


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
