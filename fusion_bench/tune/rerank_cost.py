"""The cost of a system: candidates reranked, their price, their latency, query by query.

Candidates are priced and timed by the calls that they need: a call of b candidates does not take b
times as long as one, and a search unit is billed whole. Between measurements the estimate errs
upward: no call is taken to be faster than the smallest measured one.

From the ledger of the run that scored the rerank list where there is one, else as declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.experiment.settings import EffortSettings
from fusion_bench.experiment.system import System
from fusion_bench.io.provenance import ListMeta
from fusion_bench.methods.blend import RerankBlend
from fusion_bench.ranking.collapse import unfold_collapse
from fusion_bench.ranking.plain_systems import fit_system, plain_systems
from fusion_bench.report import tuning_records as model

#: z_{.95}: a log-normal latency is known by its p50 and its p95.
Z95 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True)
class LatencyModel:
    """The latency of one query: concurrent calls, of which the slowest counts.

    Attributes:
        sizes: Documents of a call, ascending …
        p50: … the median of its latency, in seconds …
        p95: … and the 95th percentile.
        batch: Documents of a call at most.
        beside: Calls at once at most.
    """

    sizes: tuple[float, ...]
    p50: tuple[float, ...]
    p95: tuple[float, ...]
    batch: float
    concurrency: int

    def __call__(self, count: int, share: float = 0.5) -> float:
        """Seconds within which this share of queries with so many candidates is answered.

        Latencies of calls are taken as log-normal and independent. More calls than may be made at
        once come in rounds.
        """
        if count == 0:
            return 0.0
        calls = max(1, math.ceil(count / self.batch))
        rounds = math.ceil(calls / self.concurrency)
        p50, p95 = (
            self._call_seconds(min(count, self.batch), known) for known in (self.p50, self.p95)
        )
        sigma = math.log(p95 / p50) / Z95 if p50 > 0 else 0.0
        slowest = NormalDist().inv_cdf(share ** (1 / math.ceil(calls / rounds)))
        return rounds * p50 * math.exp(sigma * slowest)

    def _call_seconds(self, documents: float, known: tuple[float, ...]) -> float:
        """Linear between measured sizes, proportional above them, constant below them."""
        grown = np.maximum.accumulate(known)
        factor = max(documents / self.sizes[-1], 1.0)
        return float(np.interp(documents, self.sizes, grown)) * factor


def max_call_size(meta: ListMeta) -> float:
    """Documents of a call at most, as far as the ledger shows."""
    batch = _read_number(_first_provider(meta), "batch") or math.inf
    return _read_number(meta.ledger, "largest_call") or min(batch, float(meta.depth))


def price_model(meta: ListMeta) -> Callable[[int], float] | None:
    """The price of a query by its candidates; None where the provider's price is not known.

    It is that of whole search units, and a price per candidate for tokens.
    """
    ledger, price = meta.ledger, _first_provider(meta).get("price")
    total, documents = _read_number(ledger, "cost"), _read_number(ledger, "documents")
    if not documents or not (total or isinstance(price, Mapping)):
        return None
    searches, by_units = _read_number(ledger, "searches"), 0.0
    if searches:
        by_tokens = _read_number(ledger, "tokens") + _read_number(ledger, "output_tokens") > 0
        rate = _read_number(price, "per_1000_searches") if isinstance(price, Mapping) else 0.0
        by_units = min(total, searches * rate / 1e3) if by_tokens else total
    # Some calls are billed more units than others (long documents): each counts its share.
    each = max(searches / max(_read_number(ledger, "calls"), 1.0), 1.0)
    whole = round(each)
    unit = by_units / searches * each / whole if searches else 0.0
    covered, candidate = max_call_size(meta) / whole, (total - by_units) / documents
    return lambda count: math.ceil(count / covered) * unit + count * candidate


def latency_model(meta: ListMeta) -> LatencyModel | None:
    """The latency by the ledger; None where no call was made."""
    ledger = meta.ledger
    calls, documents = _read_number(ledger, "calls"), _read_number(ledger, "documents")
    rows = ledger.get("by_documents") or []
    if not rows and calls and documents:  # older ledgers do not separate calls by size
        rows = [{"documents": documents / calls, **(ledger.get("call_ms") or {})}]
    known = [row for row in rows if _read_number(row, "documents") and _read_number(row, "p50")]
    if not known:
        return None
    alone = calls <= _read_number(ledger, "queries_answered")  # no query needed a second call
    return LatencyModel(
        sizes=tuple(_read_number(row, "documents") for row in known),
        p50=tuple(_read_number(row, "p50") / 1e3 for row in known),
        p95=tuple(max(_read_number(row, "p95"), _read_number(row, "p50")) / 1e3 for row in known),
        batch=math.inf if alone else max_call_size(meta),
        concurrency=int(_read_number(_first_provider(meta), "concurrency")) or 1,
    )


def _first_provider(meta: ListMeta) -> Mapping[str, Any]:
    """The configuration of the provider that was asked first; empty where it is not known."""
    listed = meta.settings.get("providers")
    first = listed[0] if isinstance(listed, list) and listed else None
    return first if isinstance(first, Mapping) else {}


def _read_number(record: Mapping[str, Any], key: str) -> float:
    """A number of a record that may hold anything; 0 where there is none."""
    value = record.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


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


def count_candidates(system: System, runs: AlignedRuns) -> dict[str, IntArray]:
    """Map each rerank list to the documents that it scores for each query, shape (Q,)."""
    by_reranker: dict[str, IntArray] = {}
    system = unfold_collapse(system)
    for index, plain, part in plain_systems(fit_system(system, runs), runs):
        blend = plain.blend
        if isinstance(blend, RerankBlend):
            sizes: IntArray = np.diff(plain.active_runs(part).offsets)
            counts = np.minimum(sizes, blend.depth)
            if not blend.always_rerank:
                counts = np.where(sizes <= blend.skip_limit, 0, counts)
            empty = np.zeros(len(runs.queries), dtype=np.int64)
            by_reranker.setdefault(blend.reranker, empty)[index] = counts
    for stage in (system.stages or {}).values():
        for name, stage_counts in count_candidates(stage, runs).items():
            by_reranker[name] = by_reranker.get(name, 0) + stage_counts
    return by_reranker


def system_cost(system: System, runs: AlignedRuns, costs: Mapping[str, RerankerCost]) -> SystemCost:
    """The mean cost of a system over all queries of ``runs``."""
    counts = count_candidates(system, runs)
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
