"""Whether fusing pays: the best fusion against the best source alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.system_result import SystemResult
from fusion_bench.report.evaluation.paired_difference import paired_difference
from fusion_bench.report.page import Finding, Tone
from fusion_bench.stats.comparison import NOISE
from fusion_bench.util.formatting import (
    format_coverage,
    format_difference,
    format_number,
    format_p_value,
    is_known,
)

#: What systems are called that all blend in a reranker.
RERANKED = "Fusion with a reranker"


def fusion_finding(report: Report, collection: Collection) -> Finding | None:
    """The best fusion against the best source alone; None where one of them is missing.

    Like with like: a reranker's merit is not fusion's. Reranked fusions only count where even they
    lose; where there are no others, nothing can be said about fusion alone.
    """
    primary = collection.primary_measure

    def mean_of(row: SystemResult) -> float:
        return row.measures[primary].mean or 0.0

    candidates = (*collection.ranked_systems, *collection.reference_rows)
    rows = [row for row in candidates if is_known(row.measures[primary].mean)]
    fusions = [row for row in rows if _is_fusion(row)]
    single_kinds = (row for row in rows if row.kind != "ceiling")
    singles = [row for row in single_kinds if not (_is_fusion(row) or _has_reranker(row))]
    if not fusions or not singles:
        return None
    single, fusion = max(singles, key=mean_of), fusions[0]
    plain = [row for row in fusions if not _is_reranked(row)]
    label = "Fusion" if plain else RERANKED
    if plain and plain != fusions and mean_of(single) <= mean_of(fusion):
        label, fusion = "Fusion without a reranker", plain[0]
    mean, is_significant, evidence = _compare(report, collection, fusion, single)
    is_shown = is_significant and abs(mean) > NOISE
    tone: Tone = ("better" if mean > 0 else "worse") if is_shown else "plain"
    claim = f"is {tone} than" if is_shown else "is not shown to differ from"
    note = "" if single.kind == "system" else f", {single.note},"
    text = (
        f"{label} {claim} the best single source: {fusion.name} {format_number(mean_of(fusion))} "
        f"against {single.name}{note} {format_number(mean_of(single))} ({evidence})."
    )
    if label == RERANKED:
        text += " No fusion without a reranker was evaluated."
    if _has_idle_reranker(fusion):
        text += f" In {fusion.name} the reranker weighs 0."
    return Finding(text, tone, "fusion")


def _is_fusion(row: SystemResult) -> bool:
    return any(len(part.get("runs", ())) > 1 for part in _list_parts(row.config))


def _is_reranked(row: SystemResult) -> bool:
    return _has_reranker(row) and not _has_idle_reranker(row)


def _has_reranker(row: SystemResult) -> bool:
    """Whether a reranker is named; the floor row, a source as it is, has none."""
    return bool(_list_rerank_blends(row))


def _has_idle_reranker(row: SystemResult) -> bool:
    """Whether rerankers are named, but the scores of each weigh 0."""
    blends = _list_rerank_blends(row)
    return bool(blends) and all(blend.get("beta") == 0 for blend in blends)


def _list_rerank_blends(row: SystemResult) -> list[Mapping[str, Any]]:
    """The blends that name a reranker, those of stages too."""
    blends = (part.get("blend") or {} for part in _list_parts(row.config))
    return [blend for blend in blends if blend.get("method", "none") != "none"]


def _list_parts(config: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """A system's configuration and those of its stages, however deep."""
    if config is not None:
        yield config
        for stage in (config.get("stages") or {}).values():
            yield from _list_parts(stage)


def _compare(
    report: Report, collection: Collection, fusion: SystemResult, single: SystemResult
) -> tuple[float, bool, str]:
    """Mean of fusion - single source, whether it is significant, and its interval or p.

    Where one of them is the baseline, the report's own test decides.
    """
    for row, base, sign in ((fusion, single, 1), (single, fusion, -1)):
        comparison = collection.comparison(row.name, collection.primary_measure)
        if comparison is not None and base.name == collection.baseline:
            mean = sign * comparison.difference
            p = format_p_value(comparison.p_holm, alpha=report.alpha)
            evidence = f"{format_number(mean, signed=True)}, adjusted p {p}"
            return mean, comparison.answer in {"better", "worse"}, evidence
    values = [row.measures[collection.primary_measure].values for row in (fusion, single)]
    result = paired_difference(report, collection, *values)
    if result is None:
        return 0.0, False, "n/a"
    difference = format_difference(result.mean, result.low, result.high)
    evidence = f"{difference}, {format_coverage(report.alpha)} interval, not adjusted"
    return result.mean, result.low > 0 or result.high < 0, evidence
