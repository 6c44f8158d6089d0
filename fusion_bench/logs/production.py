"""What production was set to, as a system that replays it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fusion_bench.config.query_types import CONV_03_05, UNSURE
from fusion_bench.logs.lists_of_log import RERANK
from fusion_bench.logs.logged_queries import LoggedQuery
from fusion_bench.logs.query_facts import search_type
from fusion_bench.schema import RerankConfig, RRFConfig, SearchWeights
from fusion_bench.util.formatting import pluralize

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True)
class ProductionSystem:
    """Production as a system of an experiment.

    Attributes:
        keys: As in YAML.
        notes: Settings that differ from query to query, where one had to be chosen.
    """

    keys: dict[str, Any]
    notes: tuple[str, ...]


def describe_production(
    queries: Sequence[LoggedQuery],
    strategies: Sequence[str],
    rrf: RRFConfig,
    *,
    is_reranked: bool,
) -> ProductionSystem:
    """The system that fuses, reranks, filters and cuts as production was asked to.

    Args:
        queries: The queries.
        strategies: The lists that there are.
        rrf: How they are fused.
        is_reranked: Whether there is a rerank list.
    """
    notes: list[str] = []
    fusion: dict[str, Any] = {"method": "rrf", "k": rrf.k}
    if rrf.normalize_scores:
        fusion["normalize"] = "three_lists"
    fusion["weights"] = _describe_weights(queries, strategies, notes)
    keys: dict[str, Any] = {"runs": list(strategies), "fusion": fusion}
    if is_reranked:
        depth = RerankConfig().top_k
        keys["blend"] = {"method": "replace", "reranker": RERANK, "depth": depth}
        keys["blend"]["missing"] = "below"
    least = _choose_most_common(
        "minRelevance", (query.query.filters.min_relevance for query in queries), notes
    )
    if least > 0:
        keys["min_relevance"] = least
    keys["top_k"] = _choose_most_common("offset + limit", (query.top_k for query in queries), notes)
    return ProductionSystem(keys, tuple(notes))


def _describe_weights(
    queries: Sequence[LoggedQuery], strategies: Sequence[str], notes: list[str]
) -> object:
    """The weights of all queries, or by query type where they differ by it."""
    by_type: dict[str, list[SearchWeights]] = {}
    for query in queries:
        by_type.setdefault(search_type(query), []).append(query.query.options.weights)
    everywhere = {weights for values in by_type.values() for weights in values}
    if len(everywhere) == 1:
        return _keep(everywhere.pop().model_dump(), strategies)
    table = {
        query_type: _choose_most_common(f"weights of type {query_type!r}", values, notes)
        for query_type, values in by_type.items()
    }
    if len(set(table.values())) == 1:
        return _keep(next(iter(table.values())).model_dump(), strategies)
    weights = {name: _keep(value.model_dump(), strategies) for name, value in table.items()}
    weights.setdefault(UNSURE, _keep(CONV_03_05[UNSURE], strategies))
    return {"by_query_type": weights}


def _keep(weights: Mapping[str, float], strategies: Sequence[str]) -> dict[str, float]:
    """The weights of the lists that there are."""
    return {name: weights[name] for name in strategies}


def _choose_most_common(what: str, values: Iterable[V], notes: list[str]) -> V:
    """The most common value; a note where it is not the only one."""
    counts = Counter(values)
    value, count = counts.most_common(1)[0]
    others = counts.total() - count
    if others:
        text = value if not isinstance(value, SearchWeights) else value.model_dump()
        notes.append(
            f"{what} differs: {text} is used, and {pluralize(others, 'query')} had another"
        )
    return value
