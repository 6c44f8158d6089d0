"""What speaks against the numbers of a collection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from fusion_bench.evaluation.dataset_checks.data_warnings import find_data_warnings
from fusion_bench.evaluation.dataset_checks.ignored_queries import warn_ignored
from fusion_bench.evaluation.dataset_checks.judged_grades import find_grade_warnings
from fusion_bench.evaluation.dataset_checks.near_duplicates import warn_near_duplicates
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.report import Provenance, Report
from fusion_bench.evaluation.synthetic_queries import warn_synthetic
from fusion_bench.evaluation.trials.first_trial import warn_first_trial
from fusion_bench.report.evaluation.unjudged_warnings import describe_decided, unjudged_warnings
from fusion_bench.report.judging.judge_line import JudgePlace
from fusion_bench.report.page import Finding
from fusion_bench.report.v2_switch import v2_findings
from fusion_bench.util.formatting import list_names

#: Warn where ties decide the value of more of the queries than this.
MAX_TIED = 0.05

#: A key for programs, and the text.
Warnings: TypeAlias = Iterator[tuple[str, str]]


def data_warnings(report: Report, collection: Collection) -> Iterator[Finding]:
    """Whatever a reader should know before trusting a number."""
    yield from list_findings(find_judge_warnings(collection.judge, collection.runs))
    yield from list_findings(
        find_grade_warnings(
            collection.grades,
            collection.binary_relevance,
            is_machine=collection.judge is not None,
        )
    )
    yield from list_findings(warn_synthetic(collection.synthetic_queries))
    ignored = warn_ignored(collection.ignored_queries, len(collection.queries))
    yield from list_findings(ignored)
    yield from setting_warnings(report.settings, report.provenance)
    configs = {row.name: row.config or {} for row in collection.ranked_systems}
    queries = len(collection.queries)
    warnings_of_lists = find_data_warnings(collection.runs, queries, configs, collection.measures)
    yield from list_findings(warnings_of_lists)
    yield from list_findings(warn_near_duplicates(collection.near_duplicates))
    yield from list_findings(warn_first_trial(collection.first_trial))
    warnings = (
        *_unjudged_warnings(
            collection,
            JudgePlace.of_report(report.provenance, collection.name, len(report.collections)),
        ),
        *_tie_warnings(collection),
    )
    yield from (Finding(text, "warning", key) for key, text in warnings)


def setting_warnings(settings: Mapping[str, object], provenance: Provenance) -> Iterator[Finding]:
    """What the experiment says against its numbers, and version 2 that is switched off."""
    if settings.get("caveat"):
        yield Finding(str(settings["caveat"]), "warning", "caveat")
    yield from v2_findings({"all systems": provenance.v2_enabled})


def list_findings(warnings: Iterable[DataWarning]) -> Iterator[Finding]:
    """Warnings as findings of a page."""
    return (Finding(warning.text, "warning", warning.key) for warning in warnings)


def _unjudged_warnings(collection: Collection, place: JudgePlace) -> Warnings:
    """Too many unjudged documents to trust a measure, and answers that they decide."""
    shares = {row.name: row.unjudged_share or 0.0 for row in collection.ranked_systems}
    is_sparse = not collection.has_irrelevant_judgments
    yield from unjudged_warnings(shares, collection.judgments, is_sparse=is_sparse)
    if decided := describe_decided(collection, place):
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
