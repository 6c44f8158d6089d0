"""Price and latency of reranking n candidates, from the ledger of the run that scored a list.

Candidates are priced and timed by the calls that they need: a call of b candidates does not take b
times as long as one, and a search unit is billed whole. Between measurements the estimate errs
upward: no call is taken to be faster than the smallest measured one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from fusion_bench.io.provenance import ListMeta

#: z_{.95}: a log-normal latency is known by its p50 and its p95, as in the simulation.
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
