"""The differences of a report, as a plan of queries needs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.power.power_plan import PlannedComparison, PlanWarning
from fusion_bench.stats.power.spread import Spread, estimate_spread


class ReportSpread(NamedTuple):
    """The spread of one comparison of a report, and its family.

    Attributes:
        comparison: Its names.
        spread: Of its differences on the primary measure.
        systems: Compared systems of the family, over all collections.
        critical_value: The report's, of its own level; None = of another level, or the report
            has none.
        warnings: What speaks against the judge of the collection.
    """

    comparison: PlannedComparison
    spread: Spread
    systems: int
    critical_value: float | None
    warnings: tuple[PlanWarning, ...]


def read_report_spread(
    report: Report, collection: str | None, system: str | None, alpha: float
) -> ReportSpread:
    """The spread of one comparison on the primary measure.

    Args:
        report: Gives values per query.
        collection: By default the first.
        system: By default the compared system with the highest mean.
        alpha: Family-wise level that is planned for.

    Raises:
        ConfigError: Nothing was compared with the baseline.
        DataError: The two systems do not differ on any query.
        UnknownNameError: No such collection or system.
    """
    part = _find_collection(report, collection)
    candidate = _find_candidate(part, system)
    names = [(each, name) for each in report.collections for name in _list_candidates(each)]
    difference = _read_differences(part, candidate)
    if not difference.any():
        raise DataError(
            f"collection {part.name!r}: {candidate!r} and the baseline {part.baseline!r} have the "
            f"same {part.primary_measure} on every query, which tells no spread"
        )
    critical = None
    stored = part.comparison(candidate, part.primary_measure)
    if stored is not None and alpha == report.alpha:
        critical = stored.critical_value
    spread = estimate_spread(difference, number_by_appearance(part.groups)[0])
    comparison = PlannedComparison(part.name, part.primary_measure, part.baseline, candidate)
    warnings = tuple(
        PlanWarning(each.key, each.text) for each in find_judge_warnings(part.judge, part.runs)
    )
    return ReportSpread(comparison, spread, len(names), critical, warnings)


def _find_collection(report: Report, name: str | None) -> Collection:
    by_name = {each.name: each for each in report.collections}
    if name is not None and name not in by_name:
        raise UnknownNameError("collection", name, by_name)
    return report.collections[0] if name is None else by_name[name]


def _find_candidate(collection: Collection, name: str | None) -> str:
    candidates = _list_candidates(collection)
    if name is not None and name not in candidates:
        raise UnknownNameError("system", name, candidates)
    if not candidates:
        raise ConfigError(f"collection {collection.name!r}: no system but the baseline")
    return candidates[0] if name is None else name


def _list_candidates(collection: Collection) -> list[str]:
    """Compared systems, the one with the highest mean first."""
    names = (row.name for row in collection.ranked_systems)
    return [name for name in names if name != collection.baseline]


def _read_differences(collection: Collection, candidate: str) -> FloatArray:
    """(Q,): candidate − baseline on the primary measure."""
    ours, baseline = (
        np.array(
            collection.system(name).measures[collection.primary_measure].values, dtype=np.float64
        )
        for name in (candidate, collection.baseline)
    )
    return paired_difference(ours, baseline)
