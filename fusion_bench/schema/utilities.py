"""What production computes from such records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, isfinite

from fusion_bench.errors import ConfigError
from fusion_bench.schema.enumerations import SINGLE_STRATEGIES, SearchStrategy
from fusion_bench.schema.items import SearchResultItem
from fusion_bench.schema.query import SearchOptions
from fusion_bench.schema.settings import RRFConfig
from fusion_bench.schema.weights import SearchWeights


def calculate_rrf_score(
    ranks: Mapping[SearchStrategy, int], weights: SearchWeights, config: RRFConfig | None = None
) -> float:
    """Σ weight / (k + rank), over the strategies that returned the document.

    Divided by 3/(k+1) and cut at 1 where ``normalize_scores`` is on, which is the default.

    Args:
        ranks: Strategy → the document's rank in its list, from 1.
        weights: What each strategy counts.
        config: k, and whether scores are normalized.

    Raises:
        ConfigError: A rank below 1, or one of no single strategy.
    """
    config = config or RRFConfig()
    for strategy, rank in ranks.items():
        if strategy not in SINGLE_STRATEGIES or rank < 1:
            raise ConfigError(
                f"ranks: ranks from 1 of {', '.join(SINGLE_STRATEGIES)} are needed, given "
                f"{strategy}: {rank}"
            )
    score = fsum(getattr(weights, name) / (config.k + rank) for name, rank in ranks.items())
    return min(1.0, score * (config.k + 1) / 3) if config.normalize_scores else score


def normalize_scores(scores: Sequence[float]) -> list[float]:
    """The scores of one list on a scale of 0 to 1: (x − least) / (greatest − least).

    Equal scores become 1. Source: min-max normalization, as BM25 scores need it (REQ-TYPE-009).

    Raises:
        ConfigError: A score is NaN or infinite.
    """
    if not scores:
        return []
    for score in scores:
        if not isfinite(score):
            raise ConfigError(f"scores: finite numbers are needed, given {score}: leave it out")
    low, high = min(scores), max(scores)
    return [1.0 if high == low else (score - low) / (high - low) for score in scores]


def select_results(
    items: Sequence[SearchResultItem], min_relevance: float, options: SearchOptions
) -> list[SearchResultItem]:
    """The page that a search returns: relevant results, less ``offset``, at most ``limit``.

    Args:
        items: Best first.
        min_relevance: Results that score below this are dropped first.
        options: ``offset`` and ``limit``.
    """
    relevant = [item for item in items if item.score >= min_relevance]
    return relevant[options.offset : options.offset + options.limit]
