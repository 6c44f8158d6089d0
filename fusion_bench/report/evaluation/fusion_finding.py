"""Whether fusing pays: the best fusion against the best source alone."""

from __future__ import annotations

from typing import NamedTuple

from fusion_bench.evaluation.report_records import Collection, Report, SystemResult
from fusion_bench.report.evaluation.paired_difference import paired_difference
from fusion_bench.report.page import Finding
from fusion_bench.util.formatting import (
    format_coverage,
    format_interval,
    format_number,
    format_p_value,
    is_known,
)

#: Values closer than this are equal.
NOISE = 1e-12
#: What systems are called that all blend in a reranker.
RERANKED = "Fusion with a reranker"


class FusionContest(NamedTuple):
    """The best fusion and the best single source, and what to call the fusion."""

    fusion: SystemResult
    single: SystemResult
    label: str


class Difference(NamedTuple):
    """Fusion - single source: its mean, whether it is significant, and its interval or p."""

    mean: float
    is_significant: bool
    evidence: str


def fusion_finding(report: Report, collection: Collection) -> Finding | None:
    """The best fusion against the best source alone; None where one of them is missing."""
    contest = _select_contest(collection)
    if contest is None:
        return None
    difference = _difference(report, collection, contest)
    means = [format_number(_primary_mean(collection, row)) for row in contest[:2]]
    single = contest.single.name
    if contest.single.kind == "floor":
        single = f"{single} ({contest.single.note})"
    text = (
        f"{contest.label} {_claim(difference)}: {contest.fusion.name} {means[0]} against {single} "
        f"{means[1]} ({difference.evidence})."
    )
    if contest.label == RERANKED:
        text += " No fusion without a reranker was evaluated."
    is_proven = difference.is_significant and abs(difference.mean) > NOISE
    if not is_proven:
        return Finding(text, key="fusion")
    return Finding(text, "better" if difference.mean > 0 else "worse", "fusion")


def _claim(difference: Difference) -> str:
    if abs(difference.mean) <= NOISE:
        return "equals the best single source"
    if difference.mean > 0:
        is_shown = "is" if difference.is_significant else "is not shown to be"
        return f"{is_shown} better than the best single source"
    unproven = "" if difference.is_significant else ", not significantly"
    return f"is below the best single source{unproven}"


def _select_contest(collection: Collection) -> FusionContest | None:
    """Like with like: a reranker's merit is not fusion's.

    Reranked fusions only count where even they lose; where there are no others, nothing can be
    said about fusion alone.
    """
    candidates = (*collection.ranked_systems, *collection.systems)
    rows = [row for row in candidates if is_known(_primary_mean(collection, row))]
    fusions = [row for row in rows if _is_fusion(row)]
    singles = [row for row in rows if _is_single(row)]
    if not fusions or not singles:
        return None
    single = max(singles, key=lambda row: _sortable_mean(collection, row))
    plain = [row for row in fusions if not _is_reranked(row)]
    if not plain:
        return FusionContest(fusions[0], single, RERANKED)
    best = fusions[0]
    if plain == fusions or _sortable_mean(collection, single) > _sortable_mean(collection, best):
        return FusionContest(best, single, "Fusion")
    return FusionContest(plain[0], single, "Fusion without a reranker")


def _primary_mean(collection: Collection, row: SystemResult) -> float | None:
    return row.measures[collection.primary_measure].mean


def _sortable_mean(collection: Collection, row: SystemResult) -> float:
    return _primary_mean(collection, row) or 0.0


def _is_fusion(row: SystemResult) -> bool:
    return row.config is not None and len(row.config.get("runs", ())) > 1


def _is_reranked(row: SystemResult) -> bool:
    """The floor row, a source as it is, is not."""
    config = row.config or {}
    return bool(config.get("blend", {}).get("method", "none") != "none")


def _is_single(row: SystemResult) -> bool:
    return row.kind != "ceiling" and not _is_fusion(row) and not _is_reranked(row)


def _difference(report: Report, collection: Collection, contest: FusionContest) -> Difference:
    """Fusion - single source; where one of them is the baseline, by the report's own test."""
    fusion, single, _ = contest
    for row, base, sign in ((fusion, single, 1), (single, fusion, -1)):
        comparison = collection.comparison(row.name, collection.primary_measure)
        if comparison is not None and base.name == collection.baseline:
            mean = sign * comparison.difference
            p = format_p_value(comparison.p_holm, alpha=report.alpha)
            is_significant = comparison.answer in {"better", "worse"}
            evidence = f"{format_number(mean, signed=True)}, adjusted p {p}"
            return Difference(mean, is_significant, evidence)
    values = [row.measures[collection.primary_measure].values for row in (fusion, single)]
    result = paired_difference(report, collection, *values)
    if result is None:
        return Difference(0.0, False, "n/a")
    interval = format_interval(result.low, result.high, signed=True)
    evidence = (
        f"{format_number(result.mean, signed=True)}, {format_coverage(report.alpha)} interval "
        f"{interval}, not adjusted"
    )
    return Difference(result.mean, result.low > 0 or result.high < 0, evidence)
