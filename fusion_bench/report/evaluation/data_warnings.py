"""What speaks against the numbers of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from fusion_bench.evaluation.dataset_summary import list_warnings
from fusion_bench.evaluation.near_duplicates import describe_near_duplicates
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.report_records.near_duplicates import NearDuplicates
from fusion_bench.evaluation.report_records.report import Provenance, Report
from fusion_bench.report.evaluation.unjudged_warnings import describe_decided, unjudged_warnings
from fusion_bench.report.page import Finding
from fusion_bench.report.v2_switch import v2_findings
from fusion_bench.util.formatting import list_names, pluralize

#: Warn where ties decide the value of more of the queries than this.
MAX_TIED = 0.05
#: Unjudged queries beyond this part of the evaluated ones are a larger list, and no mistake.
MAX_UNMATCHED = 0.1
#: Normalizers that leave scores below 0 there.
KEEPS_SIGN = frozenset({"none", "max", "l2", "arctan"})


#: A key for programs, and the text.
Warnings: TypeAlias = Iterator[tuple[str, str]]


def data_warnings(report: Report, collection: Collection) -> Iterator[Finding]:
    """Whatever a reader should know before trusting a number."""
    yield from setting_warnings(report.settings, report.provenance)
    yield from input_warnings(collection.runs, len(collection.queries))
    yield from duplicate_warnings(collection.near_duplicates)
    warnings = (
        *_top_k_warnings(collection),
        *_missing_zero_warnings(collection),
        *_unjudged_warnings(collection),
        *_tie_warnings(collection),
    )
    yield from (Finding(text, "warning", key) for key, text in warnings)


def setting_warnings(settings: Mapping[str, object], provenance: Provenance) -> Iterator[Finding]:
    """What the experiment says against its numbers, and version 2 that is switched off."""
    if settings.get("caveat"):
        yield Finding(str(settings["caveat"]), "warning", "caveat")
    yield from v2_findings({"all systems": provenance.v2_enabled})


def input_warnings(runs: Sequence[ListInfo], queries: int) -> Iterator[Finding]:
    """What is doubtful of the input lists.

    Args:
        runs: The lists.
        queries: Number of evaluated queries.
    """
    for run in runs:
        for key, text in list_warnings(run, MAX_UNMATCHED * queries):
            yield Finding(text, "warning", key)


def duplicate_warnings(*records: NearDuplicates | None) -> Iterator[Finding]:
    """Queries that depend on each other though no group says so; None = not found."""
    for record in records:
        if record is not None:
            yield Finding(describe_near_duplicates(record), "warning", "near-duplicate queries")


def _top_k_warnings(collection: Collection) -> Warnings:
    """Measures that look deeper than ``top_k`` lets a system's list go."""
    systems: dict[int, list[str]] = {}
    for row in collection.ranked_systems:
        if (top_k := (row.config or {}).get("top_k")) is not None:
            systems.setdefault(top_k, []).append(row.name)
    for top_k, names in systems.items():
        # A measure without a cutoff looks at all ranks.
        cutoffs = {name: name.rpartition("@")[2] for name in collection.measures}
        deeper = (
            n for n, cutoff in cutoffs.items() if not cutoff.isdecimal() or int(cutoff) > top_k
        )
        if measures := [*deeper]:
            yield (
                "top_k",
                f"top_k cuts the lists of {list_names(names)} to {pluralize(top_k, 'document')}: "
                f"{' and '.join(measures)} cannot see relevant documents below.",
            )


def _missing_zero_warnings(collection: Collection) -> Warnings:
    """Systems for which absence from a list beats a score below 0 in it."""
    lowest = {info.name: info.lowest_score or 0.0 for info in collection.runs}
    systems: list[str] = []
    lists: dict[str, None] = {}
    for row in collection.ranked_systems:
        config = row.config or {}
        fusion = config.get("fusion") or {}
        is_zero = fusion.get("missing") == "zero" or fusion.get("method") == "comb_sum"
        normalize = fusion.get("normalize") or "none"
        method = normalize if isinstance(normalize, str) else normalize.get("method")
        negative = [name for name in config.get("runs", ()) if lowest.get(name, 0.0) < 0]
        if is_zero and method in KEEPS_SIGN and negative and len(config["runs"]) > 1:
            systems.append(row.name)
            lists |= dict.fromkeys(negative)
    if systems:
        yield (
            "missing zero",
            f"{list_names([*lists])} with scores below 0: in {list_names(systems)} an absent "
            "document counts 0, so it stands above one that the list returned with less.",
        )


def _unjudged_warnings(collection: Collection) -> Warnings:
    """Too many unjudged documents to trust a measure, and answers that they decide."""
    shares = {row.name: row.unjudged_share or 0.0 for row in collection.ranked_systems}
    is_sparse = not collection.has_irrelevant_judgments
    yield from unjudged_warnings(shares, collection.judgments, is_sparse=is_sparse)
    if decided := describe_decided(collection):
        yield "unjudged decide", decided


def _tie_warnings(collection: Collection) -> Warnings:
    """Ties in final lists, and inside the lists that systems read, that decide many values."""
    total, primary = len(collection.queries), collection.primary_measure
    results = {row.name: row.measures[primary] for row in collection.ranked_systems}
    final = {name: result.ties for name, result in results.items()}
    inside = {name: result.source_ties for name, result in results.items()}
    for key, ties in (("ties", final), ("source ties", inside)):
        counts = {name: each.affected_queries for name, each in ties.items() if each}
        yield from tie_warnings(key, counts, primary, total)


def tie_warnings(key: str, counts: Mapping[str, int], measure: str, total: int) -> Warnings:
    """Ties that decide the value of many queries.

    Args:
        key: ``ties`` of the final lists, or ``source ties`` inside the lists that are read.
        counts: System → queries whose value depends on them.
        measure: The measure.
        total: Queries.
    """
    tied = {name: count for name, count in counts.items() if count > MAX_TIED * total}
    where = "in the final lists" if key == "ties" else "inside the lists that are read"
    if tied:
        yield (
            key,
            f"The order of documents with equal scores {where} changes {measure} on more than "
            f"{MAX_TIED:.0%} of the queries for {list_names([*tied])} (at most "
            f"{max(tied.values()):,} of {total:,}).",
        )
