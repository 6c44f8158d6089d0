"""Compare systems of finished reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.stats.comparison import Comparison, compare_with_baseline


class CollectionComparison(NamedTuple):
    """The comparisons of one collection, the primary measure first.

    Attributes:
        collection: The dataset.
        queries: How many.
        alpha: 1 − coverage of the intervals.
        family: So many comparisons with the baseline the adjusted p-values allow for, whether or
            not they were asked for.
        comparisons: By measure.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` said for the baseline and for the candidates;
            false = v2 ran as v1.
    """

    collection: str
    queries: int
    alpha: float
    family: int
    comparisons: tuple[Comparison, ...]
    v2_enabled: dict[str, bool]


def compare_reports(
    first: Report, second: Report | None, *, baseline: str | None, candidates: Sequence[str]
) -> list[CollectionComparison]:
    """Compare systems of one report, or of two reports on the same queries.

    Args:
        first: Gives the baseline.
        second: Gives the candidates; the first itself when None.
        baseline: Name of the baseline; by default the first report's own, or for one candidate
            of a second report its namesake.
        candidates: Names of the candidates; by default all but the baseline, and of a second
            report all. p-values are adjusted for the others all the same: whoever picks the best
            first would be sure too easily. Only a system and its namesake are one comparison.

    Raises:
        ConfigError: The reports have no collection in common, it is not the same data, or a
            report lacks what this package writes.
        UnknownNameError: No such system.
    """
    other = first if second is None else second
    shared = {c.name: c for c in other.collections}
    pairs = [(c, shared[c.name]) for c in first.collections if c.name in shared]
    if not pairs:
        names = [", ".join(c.name for c in report.collections) for report in (first, other)]
        raise ConfigError(f"the reports have no collection in common ({' against '.join(names)})")
    two = second is not None
    v2 = {
        "baseline": first.provenance.v2_enabled,
        "candidates": other.provenance.v2_enabled,
    }
    return [
        _contrast(first, *pair, baseline, candidates, two=two)._replace(v2_enabled=v2)
        for pair in pairs
    ]


def _contrast(
    report: Report,
    left: Collection,
    right: Collection,
    baseline: str | None,
    candidates: Sequence[str],
    *,
    two: bool,
) -> CollectionComparison:
    _require_comparable(left, right)
    base, known = _systems(left), _systems(right)
    # Of two reports, before and after: one system is compared with its namesake.
    namesake = two and len(candidates) == 1 and candidates[0] in base
    chosen = baseline or (candidates[0] if namesake else left.baseline)
    if chosen not in base:
        raise UnknownNameError("system", chosen, base, where=left.name)
    wanted = list(candidates) or [name for name in known if two or name != chosen]
    for name in wanted:
        if name not in known:
            raise UnknownNameError("system", name, known, where=right.name)
        if name == chosen and not two:
            raise ConfigError(f"{left.name}: {name!r} cannot be compared with itself")
    if not wanted:
        raise ConfigError(f"{left.name}: the report has one system: there is nothing to compare")
    is_pair = namesake and chosen == candidates[0]
    family = wanted if is_pair else [name for name in known if two or name != chosen]
    groups = number_by_appearance(left.groups)[0]
    settings = _inference_settings(report)
    comparisons: list[Comparison] = []
    for m, measure in enumerate(left.measures):
        values = {chosen: base[chosen][m]}
        titles = {name: f"{name} (second)" if two else name for name in family}
        values |= {titles[name]: known[name][m] for name in family}
        compared = compare_with_baseline(
            measure,
            values,
            chosen,
            groups=groups,
            primary=m == 0,
            **settings,
        )
        by_name = {comparison.candidate: comparison for comparison in compared}
        comparisons += (by_name[titles[name]] for name in wanted)
    return CollectionComparison(
        left.name, len(left.queries), settings["alpha"], len(family), tuple(comparisons), {}
    )


def _inference_settings(report: Report) -> dict[str, Any]:
    names = ("seed", "alpha", "resamples")
    for name in names:
        if name not in report.settings:
            raise ConfigError(
                f"report {report.name!r}: no setting {name!r}: run the experiment again"
            )
    return {name: report.settings[name] for name in names}


def _require_comparable(left: Collection, right: Collection) -> None:
    for what in ("measures", "queries", "groups", "binary_relevance"):
        if getattr(left, what) != getattr(right, what):
            raise ConfigError(
                f"{left.name}: the reports differ in their {what.replace('_', ' ')}: run both "
                "experiments on the same split with the same measures"
            )
    if left.digests.get("qrels") != right.digests.get("qrels"):
        raise ConfigError(f"{left.name}: the reports were judged by different qrels")


def _systems(collection: Collection) -> dict[str, FloatArray]:
    """Shape (M, Q) by system: values; a missing value stays NaN and is refused later."""
    values = {}
    for row in collection.systems:
        if row.kind != "system":
            continue
        for name in collection.measures:
            if name not in row.measures:
                raise ConfigError(
                    f"{collection.name}: system {row.name!r} has no measure {name!r}: run the "
                    "experiment again"
                )
        rows = [row.measures[name].values for name in collection.measures]
        values[row.name] = np.array(rows, np.float64)
    return values
