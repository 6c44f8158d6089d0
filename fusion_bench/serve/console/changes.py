"""Two settings on the same queries: each measure with its interval, and the changed queries."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.evaluation.mean_difference import estimate_difference
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.excerpts import query_excerpt
from fusion_bench.measures import Measure
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import format_interval, format_number

#: Queries that are listed on each side.
LISTED: Final = 12


@dataclass(frozen=True)
class MeasureRow:
    """One measure of a setting beside the baseline.

    Attributes:
        measure: Its name.
        mean: Of the setting.
        baseline: Mean of the baseline.
        difference: Setting − baseline.
        low: Lower end of Student's t interval by group, not adjusted; None = one group.
        high: Upper end.
        texts: The numbers as all pages write them.
    """

    measure: str
    mean: float
    baseline: float
    difference: float
    low: float | None
    high: float | None
    texts: dict[str, str]


def compare_measure(
    measure: Measure,
    values: FloatArray,
    baseline: FloatArray,
    groups: IntArray,
    *,
    alpha: float,
) -> MeasureRow:
    """A measure of a setting against the baseline; both (Q,), as are the codes of the groups."""
    estimate = estimate_difference(measure.name, values, baseline, groups, alpha=alpha)
    mean, base = exact_mean(values), exact_mean(baseline)
    is_known = math.isfinite(estimate.low) and math.isfinite(estimate.high)
    low, high = (estimate.low, estimate.high) if is_known else (None, None)
    return MeasureRow(
        measure=measure.name,
        mean=mean,
        baseline=base,
        difference=estimate.mean,
        low=low,
        high=high,
        texts={
            "mean": format_number(mean),
            "baseline": format_number(base),
            "difference": format_number(estimate.mean, signed=True),
            "interval": format_interval(low, high, signed=True),
        },
    )


@dataclass(frozen=True)
class ChangedQuery:
    """A query whose value changed.

    Attributes:
        query: Its id.
        text: The beginning of its text; empty where it is not known.
        before: Value of what it is compared with.
        after: Value of the setting.
    """

    query: str
    text: str
    before: float
    after: float


@dataclass(frozen=True)
class Changes:
    """The queries that changed between two settings, by the primary measure.

    Attributes:
        better: Number of queries with a higher value.
        same: With the same value, but for float noise.
        worse: With a lower value.
        won: Those that gained most, the greatest gain first.
        lost: Those that lost most.
    """

    better: int
    same: int
    worse: int
    won: tuple[ChangedQuery, ...]
    lost: tuple[ChangedQuery, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def list_changes(
    queries: tuple[str, ...], after: FloatArray, before: FloatArray, dataset: Dataset
) -> Changes:
    """What changed from ``before`` to ``after``, both (Q,).

    Args:
        queries: Their ids, (Q,).
        after: Values of the setting.
        before: Values of what it is compared with.
        dataset: Knows the texts.
    """
    difference = paired_difference(after, before)
    order = np.argsort(difference, kind="stable")
    worse, better = int((difference < 0).sum()), int((difference > 0).sum())

    def describe(q: int) -> ChangedQuery:
        name = queries[q]
        text = query_excerpt(dataset.queries.get(name))
        return ChangedQuery(name, text, float(before[q]), float(after[q]))

    # Reversed by the difference alone: equal ones keep the order of the queries.
    best = np.argsort(-difference, kind="stable")[: min(better, LISTED)]
    return Changes(
        better=better,
        same=len(queries) - better - worse,
        worse=worse,
        won=tuple(describe(q) for q in best.tolist()),
        lost=tuple(describe(q) for q in order[: min(worse, LISTED)].tolist()),
    )
