"""What a system takes: candidates reranked, their price and their time, query by query.

From the record of the run that scored the rerank list where there is one, else as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fusion_bench.blend import RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.evaluation.scores import plain_parts
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import DeclaredCost, EffortSettings
from fusion_bench.io.provenance import ListMeta
from fusion_bench.report.tuning import tuning_records as model
from fusion_bench.tune.pareto.cost_model import (
    LatencyModel,
    PriceModel,
    latency_model,
    max_call_size,
    price_model,
)

__all__ = ["RerankerCost", "SystemCost", "count_candidates", "reranker_costs", "system_cost"]

#: Of one query, by the number of its candidates.
AmountPerQuery = Callable[[int], float]
#: The share of queries that ``slow`` speaks of.
SLOW_SHARE = 0.95


@dataclass(frozen=True)
class RerankerCost:
    """What one reranker takes.

    Attributes:
        cost: Of one query, in some currency; None = not known.
        seconds: Median latency of one query; None = not known.
        slow: The latency that 95 % of such queries stay within; None = not known.
        source: Where that is known from.
    """

    cost: AmountPerQuery | None
    seconds: AmountPerQuery | None
    slow: AmountPerQuery | None
    source: model.RerankerEffort


@dataclass(frozen=True)
class SystemCost:
    """What a system takes, on the mean of some queries.

    Attributes:
        counts: Rerank list → mean candidates a query.
        cost: Of 1,000 queries; None = some part of it is not known.
        seconds: A query, median latency; None likewise.
        slow: A query, 95th percentile; None likewise.
    """

    counts: Mapping[str, float]
    cost: float | None
    seconds: float | None
    slow: float | None

    @property
    def mean_candidates(self) -> float:
        """Mean candidates a query, whoever reranks them."""
        return sum(self.counts.values())


def reranker_costs(
    rerankers: Sequence[str], effort: EffortSettings, provenance: Mapping[str, ListMeta]
) -> dict[str, RerankerCost]:
    """What each reranker takes.

    Args:
        rerankers: Names of rerank lists.
        effort: What is declared.
        provenance: What is known of the making of the lists.
    """
    return {
        name: _reranker_cost(name, effort.declared_for(name), provenance.get(name), effort.prefer)
        for name in rerankers
    }


def count_candidates(system: System, runs: AlignedRuns) -> dict[str, IntArray]:
    """By rerank list, shape (Q,): documents that it has to score for each query."""
    found: dict[str, IntArray] = {}
    for index, plain, part in plain_parts(system, runs):
        blend = plain.blend
        if isinstance(blend, RerankBlend):
            sizes: IntArray = np.diff(plain.view(part).offsets)
            counts = np.minimum(sizes, blend.depth)
            if not blend.always_rerank:
                counts = np.where(sizes <= blend.skip_limit, 0, counts)
            own = found.setdefault(blend.reranker, np.zeros(len(runs.queries), dtype=np.int64))
            own[index] = counts
    return found


def system_cost(system: System, runs: AlignedRuns, known: Mapping[str, RerankerCost]) -> SystemCost:
    """What a system takes on the mean of all queries of ``runs``."""
    counts = count_candidates(system, runs)
    cost = _mean_total(counts, {name: known[name].cost for name in counts})
    return SystemCost(
        counts={name: float(own.mean()) for name, own in counts.items()},
        cost=None if cost is None else 1000 * cost,
        seconds=_mean_total(counts, {name: known[name].seconds for name in counts}),
        slow=_mean_total(counts, {name: known[name].slow for name in counts}),
    )


def _mean_total(
    counts: Mapping[str, IntArray], amounts: Mapping[str, AmountPerQuery | None]
) -> float | None:
    """Mean over queries of what all rerankers take; None where one of them is not known."""
    total = 0.0
    for name, own in counts.items():
        amount = amounts[name]
        if amount is None:
            return None
        sizes, times = np.unique(own, return_counts=True)
        each = np.array([amount(int(size)) for size in sizes])
        total += float((each * times).sum() / times.sum())
    return total


def _reranker_cost(
    name: str, declared: DeclaredCost, meta: ListMeta | None, prefer: str
) -> RerankerCost:
    bill = None if meta is None else price_model(meta)
    clock = None if meta is None else latency_model(meta)
    price, seconds = declared.price, declared.seconds
    own_price = price is not None and (bill is None or prefer == "declared")
    own_time = seconds is not None and (clock is None or prefer == "declared")
    cost = _per_candidate(price, 1e3) if own_price else bill
    return RerankerCost(
        cost=cost,
        seconds=_per_candidate(seconds) if own_time else clock,
        slow=None if own_time or clock is None else partial(clock, share=SLOW_SHARE),
        source=model.RerankerEffort(
            reranker=name,
            provider=None if meta is None else meta.asked,
            cost="declared" if own_price else None if bill is None else "ledger",
            seconds="declared" if own_time else None if clock is None else "ledger",
            declared_price=price,
            declared_seconds=seconds,
            **_ledger_facts(meta, bill, clock),
        ),
    )


def _per_candidate(amount: float | None, of: float = 1.0) -> AmountPerQuery | None:
    """An amount for each candidate."""
    return None if amount is None else lambda count: amount * count / of


def _ledger_facts(
    meta: ListMeta | None, bill: PriceModel | None, clock: LatencyModel | None
) -> dict[str, object]:
    """What the ledger says, in few numbers."""
    if meta is None or (bill is None and clock is None):
        return {}
    ledger = meta.ledger
    return {
        "queries": int(ledger.get("queries_answered") or 0),
        "calls": int(ledger.get("calls") or 0),
        "documents": int(ledger.get("documents") or 0),
        "largest_call": int(max_call_size(meta)),
        "at_once": None if clock is None else clock.concurrency,
        "recorded_price": None if bill is None else 1e3 * bill(meta.depth) / meta.depth,
        "recorded_seconds": None if clock is None else clock(meta.depth),
    }
