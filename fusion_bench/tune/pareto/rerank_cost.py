"""The cost of a system: candidates reranked, their price and their latency, query by query.

From the ledger of the run that scored the rerank list where there is one, else as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fusion_bench.blend import RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.evaluation.ranking import plain_systems
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import DeclaredCost, EffortSettings
from fusion_bench.io.provenance import ListMeta
from fusion_bench.report import tuning_records as model
from fusion_bench.tune.pareto.cost_model import (
    LatencyModel,
    PriceModel,
    latency_model,
    max_call_size,
    price_model,
)

#: Price or seconds of one query, by the number of its candidates.
AmountPerQuery = Callable[[int], float]
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
    def mean_candidates(self) -> float:
        """Mean candidates a query, of all rerankers."""
        return sum(self.counts.values())


def reranker_costs(
    rerankers: Sequence[str], effort: EffortSettings, provenance: Mapping[str, ListMeta]
) -> dict[str, RerankerCost]:
    """The cost of each reranker.

    Args:
        rerankers: Names of rerank lists.
        effort: What is declared.
        provenance: How the lists were made.
    """
    return {
        name: _reranker_cost(name, effort.declared_for(name), provenance.get(name), effort.prefer)
        for name in rerankers
    }


def count_candidates(system: System, runs: AlignedRuns) -> dict[str, IntArray]:
    """By rerank list, shape (Q,): documents that it has to score for each query."""
    by_reranker: dict[str, IntArray] = {}
    for index, plain, part in plain_systems(system, runs):
        blend = plain.blend
        if isinstance(blend, RerankBlend):
            sizes: IntArray = np.diff(plain.active_runs(part).offsets)
            counts = np.minimum(sizes, blend.depth)
            if not blend.always_rerank:
                counts = np.where(sizes <= blend.skip_limit, 0, counts)
            empty = np.zeros(len(runs.queries), dtype=np.int64)
            by_reranker.setdefault(blend.reranker, empty)[index] = counts
    return by_reranker


def system_cost(system: System, runs: AlignedRuns, costs: Mapping[str, RerankerCost]) -> SystemCost:
    """The mean cost of a system over all queries of ``runs``."""
    counts = count_candidates(system, runs)
    cost = _mean_total(counts, {name: costs[name].cost for name in counts})
    return SystemCost(
        counts={name: float(sizes.mean()) for name, sizes in counts.items()},
        cost=None if cost is None else 1000 * cost,
        seconds=_mean_total(counts, {name: costs[name].seconds for name in counts}),
        slow=_mean_total(counts, {name: costs[name].slow for name in counts}),
    )


def _mean_total(
    counts: Mapping[str, IntArray], amounts: Mapping[str, AmountPerQuery | None]
) -> float | None:
    """The sum over rerankers, as a mean over queries; None where one of them is not known."""
    total = 0.0
    for name, candidates in counts.items():
        amount = amounts[name]
        if amount is None:
            return None
        sizes, times = np.unique(candidates, return_counts=True)
        each = np.array([amount(int(size)) for size in sizes])
        total += float((each * times).sum() / times.sum())
    return total


def _reranker_cost(
    name: str, declared: DeclaredCost, meta: ListMeta | None, prefer: str
) -> RerankerCost:
    ledger_price = None if meta is None else price_model(meta)
    latency = None if meta is None else latency_model(meta)
    price, seconds = declared.price, declared.seconds
    use_declared_price = price is not None and (ledger_price is None or prefer == "declared")
    use_declared_time = seconds is not None and (latency is None or prefer == "declared")
    cost = _per_candidate(price, 1e3) if use_declared_price else ledger_price
    return RerankerCost(
        cost=cost,
        seconds=_per_candidate(seconds) if use_declared_time else latency,
        slow=None if use_declared_time or latency is None else partial(latency, share=SLOW_SHARE),
        source=model.RerankerEffort(
            reranker=name,
            provider=None if meta is None else meta.asked,
            cost="declared" if use_declared_price else None if ledger_price is None else "ledger",
            seconds="declared" if use_declared_time else None if latency is None else "ledger",
            declared_price=price,
            declared_seconds=seconds,
            **_ledger_facts(meta, ledger_price, latency),
        ),
    )


def _per_candidate(amount: float | None, of: float = 1.0) -> AmountPerQuery | None:
    """An amount for each candidate."""
    return None if amount is None else lambda count: amount * count / of


def _ledger_facts(
    meta: ListMeta | None, ledger_price: PriceModel | None, latency: LatencyModel | None
) -> dict[str, object]:
    """The ledger's totals, and its price and latency at the list's own depth."""
    if meta is None or (ledger_price is None and latency is None):
        return {}
    ledger = meta.ledger
    return {
        "queries": int(ledger.get("queries_answered") or 0),
        "calls": int(ledger.get("calls") or 0),
        "documents": int(ledger.get("documents") or 0),
        "largest_call": int(max_call_size(meta)),
        "at_once": None if latency is None else latency.concurrency,
        "recorded_price": None
        if ledger_price is None
        else 1e3 * ledger_price(meta.depth) / meta.depth,
        "recorded_seconds": None if latency is None else latency(meta.depth),
    }
