"""The cost of a system: candidates reranked, their price and their latency, query by query.

From the ledger of the run that scored the rerank list where there is one, else as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.blend import RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import EffortSettings
from fusion_bench.io.provenance import ListMeta
from fusion_bench.report.tuning_records import pareto_front as model
from fusion_bench.tune.pareto.cost_model import (
    latency_model,
    max_call_size,
    price_model,
)

#: Price or seconds of one query, by the number of its candidates.
AmountPerQuery = Callable[[int], float]
EffortAxis: TypeAlias = Literal["candidates", "cost", "seconds"]
#: The share of queries answered within ``slow``.
SLOW_SHARE = 0.95


@dataclass(frozen=True)
class RerankerCost:
    """The cost of one reranker.

    Attributes:
        cost: Of one query, in some currency; None = not known.
        seconds: Median latency of one query; None = not known.
        slow: The latency that 95 % of such queries stay within; None = not known.
        source: Where these are known from.
    """

    cost: AmountPerQuery | None
    seconds: AmountPerQuery | None
    slow: AmountPerQuery | None
    source: model.RerankerEffort


@dataclass(frozen=True)
class SystemCost:
    """The cost of a system, as a mean over some queries.

    Attributes:
        counts: Rerank list → mean candidates a query.
        cost: Of 1,000 queries; None = not known of some part.
        seconds: A query, median latency; None likewise.
        slow: A query, 95th percentile; None likewise.
    """

    counts: Mapping[str, float]
    cost: float | None
    seconds: float | None
    slow: float | None

    @property
    def candidates(self) -> float:
        """Mean candidates a query, of all rerankers."""
        return sum(self.counts.values())

    def effort(self, axis: EffortAxis) -> float:
        """The cost on one axis; 0 where it is not known."""
        return float(getattr(self, axis) or 0.0)


def reranker_costs(
    rerankers: Sequence[str], effort: EffortSettings, provenance: Mapping[str, ListMeta]
) -> dict[str, RerankerCost]:
    """The cost of each reranker.

    Args:
        rerankers: Names of rerank lists.
        effort: What is declared.
        provenance: How the lists were made.
    """
    costs: dict[str, RerankerCost] = {}
    for name in rerankers:
        declared, meta = effort.declared_for(name), provenance.get(name)
        bill = None if meta is None else price_model(meta)
        latency = None if meta is None else latency_model(meta)
        price, seconds = declared.price, declared.seconds
        use_price = price is not None and (bill is None or effort.prefer == "declared")
        use_seconds = seconds is not None and (latency is None or effort.prefer == "declared")
        facts: dict[str, object] = {}
        if meta is not None and (bill or latency):
            facts = {
                "queries": int(meta.ledger.get("queries_answered") or 0),
                "calls": int(meta.ledger.get("calls") or 0),
                "documents": int(meta.ledger.get("documents") or 0),
                "largest_call": int(max_call_size(meta)),
                "at_once": latency and latency.concurrency,
                "recorded_price": bill and 1e3 * bill(meta.depth) / meta.depth,
                "recorded_seconds": latency and latency(meta.depth),
            }
        costs[name] = RerankerCost(
            cost=_per_candidate(price, 1e3) if use_price else bill,
            seconds=_per_candidate(seconds) if use_seconds else latency,
            slow=partial(latency, share=SLOW_SHARE) if latency and not use_seconds else None,
            source=model.RerankerEffort(
                reranker=name,
                provider=None if meta is None else meta.asked,
                cost="declared" if use_price else None if bill is None else "ledger",
                seconds="declared" if use_seconds else None if latency is None else "ledger",
                declared_price=price,
                declared_seconds=seconds,
                **facts,
            ),
        )
    return costs


def count_candidates(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> dict[str, IntArray]:
    """By rerank list, shape (Q,): documents that it has to score for each query."""
    by_reranker: dict[str, IntArray] = {}
    fitted = fit_system(system, runs, spaces)
    for index, plain, part in plain_systems(fitted, runs, spaces):
        blend = plain.blend
        if isinstance(blend, RerankBlend):
            sizes: IntArray = np.diff(plain.active_runs(part).offsets)
            counts = np.minimum(sizes, blend.depth)
            if not blend.always_rerank:
                counts = np.where(sizes <= blend.skip_limit, 0, counts)
            empty = np.zeros(len(runs.queries), dtype=np.int64)
            by_reranker.setdefault(blend.reranker, empty)[index] = counts
    for stage in (system.stages or {}).values():
        for name, stage_counts in count_candidates(stage, runs, spaces).items():
            by_reranker[name] = by_reranker.get(name, 0) + stage_counts
    return by_reranker


def system_cost(
    system: System,
    runs: AlignedRuns,
    costs: Mapping[str, RerankerCost],
    spaces: Mapping[str, ScoreSpace],
) -> SystemCost:
    """The mean cost of a system over all queries of ``runs``."""
    counts = count_candidates(system, runs, spaces)
    cost, seconds, slow = (
        _mean_total([(counts[name], getattr(costs[name], amount)) for name in counts])
        for amount in ("cost", "seconds", "slow")
    )
    return SystemCost(
        counts={name: float(sizes.mean()) for name, sizes in counts.items()},
        cost=None if cost is None else 1000 * cost,
        seconds=seconds,
        slow=slow,
    )


def _mean_total(parts: Sequence[tuple[IntArray, AmountPerQuery | None]]) -> float | None:
    """The sum over rerankers, as a mean over queries; None where one of them is not known."""
    total = 0.0
    for candidates, amount in parts:
        if amount is None:
            return None
        sizes, times = np.unique(candidates, return_counts=True)
        each = np.array([amount(int(size)) for size in sizes])
        total += float((each * times).sum() / times.sum())
    return total


def _per_candidate(amount: float | None, of: float = 1.0) -> AmountPerQuery | None:
    """An amount for each candidate."""
    return None if amount is None else lambda count: amount * count / of
