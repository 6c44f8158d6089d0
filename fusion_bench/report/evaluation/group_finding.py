"""What the groups of the queries cost: the design effect."""

from __future__ import annotations

from fusion_bench.evaluation.dataset_checks.near_duplicates import CHOSEN_GROUPING
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.evaluation.paired_difference import paired_difference
from fusion_bench.report.page import Finding
from fusion_bench.util.formatting import pluralize


def group_finding(report: Report, collection: Collection) -> Finding | None:
    """The design effects of the differences from the baseline; None without groups.

    Where the dataset says which groups are searched, that is said even if there are none.
    """
    queries, groups = len(collection.queries), len(set(collection.groups))
    chosen = CHOSEN_GROUPING.get(collection.grouping, "")
    if groups == queries:
        return Finding(chosen, key="groups") if chosen else None
    primary = collection.primary_measure
    baseline = collection.system(collection.baseline).measures[primary].values
    estimates = [
        paired_difference(report, collection, row.measures[primary].values, baseline)
        for row in collection.ranked_systems
        if row.name != collection.baseline
    ]
    effects = [e.design_effect for e in estimates if e is not None and e.design_effect is not None]
    text = f"{chosen} {pluralize(queries, 'query')} in {pluralize(groups, 'group')}".strip()
    if not effects:
        return Finding(f"{text}.", key="groups")
    ends = " to ".join(dict.fromkeys(f"{end:.2g}" for end in (min(effects), max(effects))))
    return Finding(
        f"{text}: design effect {ends} (variance of the difference on {primary} by group ÷ by "
        "query).",
        key="groups",
    )
