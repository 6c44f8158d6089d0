"""Quality against rerank effort: the points, and where their effort is known from."""

from __future__ import annotations

from typing import Any, Literal

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.report.tuning_records.trials import Value


class PairedDifference(ReportRecord):
    """A mean paired difference on the held-out queries, with its interval."""

    mean: float
    low: OptionalFloat
    high: OptionalFloat


class RerankerEffort(ReportRecord):
    """Where it is known from what one reranker takes.

    Attributes:
        reranker: The rerank list.
        provider: ``provider/model`` that was asked for it; None = not known.
        cost: Where its price is known from; None = it is not.
        seconds: Where its latency is known from; None = it is not.
        declared_price: Of 1,000 candidates, as declared; None = nothing is.
        declared_seconds: Of a candidate, as declared.
        recorded_price: Of 1,000 candidates, as recorded at the list's own depth; None = nothing is.
        recorded_seconds: Median latency of a query at the list's own depth, as recorded.
        queries: That the record speaks of.
        calls: That it speaks of.
        documents: That it speaks of.
        largest_call: Documents of one call at most; None = no record.
        at_once: Calls under way together at most, while latencies were measured.
    """

    reranker: str
    provider: str | None = None
    cost: Literal["ledger", "declared"] | None = None
    seconds: Literal["ledger", "declared"] | None = None
    declared_price: float | None = None
    declared_seconds: float | None = None
    recorded_price: float | None = None
    recorded_seconds: float | None = None
    queries: int = 0
    calls: int = 0
    documents: int = 0
    largest_call: int | None = None
    at_once: int | None = None


class ParetoPoint(ReportRecord):
    """One trade of quality for effort; on the front if nothing that takes less is as good.

    Attributes:
        roles: ``default`` and ``chosen``, which are shown wherever they stand.
        reranker: The rerank list, several joined by `` + ``; None = no reranker.
        depth: Rerank depth, the greatest where query types differ; 0 = no reranker.
        candidates: Mean candidates reranked a query, over the tuning queries, as below.
        cost: Of 1,000 queries; None = not known.
        seconds: A query, median latency; None = not known.
        slow: The latency that 95 % of such queries stay within; None = not known.
        value: Mean of the primary measure over the tuning queries.
        held_out: The same over the held-out queries.
        over_default: Held out: this − the default.
        over_best: Held out: this − the efficient point of the greatest tuning value.
        params: Its numbers.
        config: The resolved system.
        efficient: Whether it is on the front of the tuning queries.
        bounds: How much of its held-out lists is judged, and what the rest could make of
            ``held_out``; None = all judgments are complete, or the point is not shown.
    """

    roles: tuple[Literal["default", "chosen"], ...] = ()
    reranker: str | None
    depth: int
    candidates: float
    cost: float | None = None
    seconds: float | None = None
    slow: float | None = None
    value: float
    held_out: float
    over_default: PairedDifference
    over_best: PairedDifference
    params: dict[str, Value]
    config: dict[str, Any]
    efficient: bool
    bounds: CompletionBounds | None = None

    @property
    def is_shown(self) -> bool:
        """Whether tables show it."""
        return self.efficient or bool(self.roles)

    @property
    def reranker_and_depth(self) -> tuple[str | None, int]:
        """Its reranker and its depth."""
        return self.reranker, self.depth


class ParetoFront(ReportRecord):
    """Quality against rerank effort.

    Attributes:
        method: How it was looked for; see ``tuning.FrontSearch``.
        evaluations: Systems evaluated for it, beside those of the search.
        axes: What points are compared by beside the measure: ``candidates``, ``cost``, ``seconds``.
        points: By effort; the best found at each depth of each reranker, the default, the choice.
        efforts: Where effort is known from, one a reranker.
        interrupted: Whether the search for it was cut short.
        unjudged: What unjudged documents could change in the held-out difference of the best point
            − the default; None = all judgments are complete, or the best is the default.
        is_contradicted: Whether they contradict that the best point gains over the default.
    """

    method: Literal["tpe", "nsga2", "depths"]
    evaluations: int
    axes: tuple[Literal["candidates", "cost", "seconds"], ...]
    points: tuple[ParetoPoint, ...]
    efforts: tuple[RerankerEffort, ...]
    interrupted: bool = False
    unjudged: UnjudgedResult | None = None
    is_contradicted: bool = False

    @property
    def efficient_points(self) -> tuple[ParetoPoint, ...]:
        """The points on the front, by effort."""
        return tuple(point for point in self.points if point.efficient)

    @property
    def best(self) -> ParetoPoint:
        """The efficient point of the greatest tuning value; of equal ones the cheapest."""
        return max(self.efficient_points, key=lambda point: (point.value, -self.effort(point)))

    @property
    def default_point(self) -> ParetoPoint:
        """The default."""
        return next(point for point in self.points if "default" in point.roles)

    def effort(self, point: ParetoPoint) -> float:
        """What points are sorted by: cost where it is known, else latency, else candidates."""
        return float(getattr(point, self.axes[-1]) or 0.0)

    def cheapest_reaching(self, value: float) -> ParetoPoint:
        """The cheapest efficient point with at least this value on the tuning queries."""
        points = [point for point in self.efficient_points if point.value >= value]
        return min(points, key=lambda point: (self.effort(point), -point.value))

    def point_name(self, point: ParetoPoint) -> str:
        """``depth 20``, with the reranker where there are several."""
        if not point.depth:
            return "no reranker"
        reranker = f" of {point.reranker}" if len(self.efforts) > 1 else ""
        return f"depth {point.depth:,}{reranker}"
