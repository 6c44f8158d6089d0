"""What a run would cost, before anything is spent."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from fusion_bench.rerank.candidates import ScoringRequest
from fusion_bench.rerank.clients import Provider
from fusion_bench.rerank.protocol import Usage
from fusion_bench.rerank.store import ScoreStore

__all__ = ["CostEstimate", "estimate_cost"]


@dataclass(frozen=True)
class CostEstimate:
    """A run that has not been made.

    Attributes:
        queries: Queries with candidates.
        documents: Pairs of query and document.
        stored: Pairs whose score is known.
        calls: Calls to make.
        usage: What they would be billed by; tokens are estimated.
        cost: Their price; None = the provider's price is not known.
    """

    queries: int
    documents: int
    stored: int
    calls: int
    usage: Usage
    cost: float | None

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def estimate_cost(work: ScoringRequest, provider: Provider, store: ScoreStore) -> CostEstimate:
    """Look everything up in the store and estimate the rest.

    Args:
        work: What is to be scored.
        provider: Who would be asked.
        store: What is known.
    """
    configured = provider.model_identity
    identity = replace(configured, model=store.resolved_model(configured))
    cut = provider.truncation
    stored, calls, usage = 0, 0, Usage()
    for question in work.queries:
        texts = [cut(candidate.text) for candidate in question.candidates]
        known = store.read_scores(identity, question.text, texts)
        missing = [text for text, score in zip(texts, known, strict=True) if score is None]
        stored += len(texts) - len(missing)
        distinct = list(dict.fromkeys(missing))
        for start in range(0, len(distinct), provider.batch):
            calls += 1
            batch = distinct[start : start + provider.batch]
            usage += provider.estimate_usage(question.text, batch)
    cost = None if provider.price is None else provider.price.cost_of(usage)
    return CostEstimate(len(work.queries), work.pair_count, stored, calls, usage, cost)
