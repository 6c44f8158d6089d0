"""What a search returned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from fusion_bench.schema._base import Count, Milliseconds, Record, Score
from fusion_bench.schema.enumerations import SINGLE_STRATEGIES, SearchStrategy
from fusion_bench.schema.items import SearchResultItem
from fusion_bench.schema.query import SearchQuery


class StrategyMetric(Record):
    """What one strategy did (REQ-TYPE-016).

    Attributes:
        enabled: Whether it ran.
        result_count: How many results it returned.
        processing_time: How long it took, in milliseconds.
        top_score: Its best score; 0 without results.
    """

    enabled: bool
    result_count: Count
    processing_time: Milliseconds
    top_score: Score


class SearchStrategyMetrics(Record):
    """What each strategy did (REQ-TYPE-015).

    Attributes:
        keyword: Keyword search.
        semantic: Semantic search.
        graph: Graph search.
    """

    keyword: StrategyMetric
    semantic: StrategyMetric
    graph: StrategyMetric

    @property
    def enabled(self) -> tuple[SearchStrategy, ...]:
        """The strategies that ran."""
        return tuple(name for name in SINGLE_STRATEGIES if getattr(self, name).enabled)


class SearchResult(Record):
    """What a search returned, with its query (REQ-TYPE-007).

    Attributes:
        query: What was asked.
        results: Best first.
        total_count: How many results matched, whatever the limit.
        processing_time: How long the search took, in milliseconds.
        strategies: What each strategy did.
    """

    query: SearchQuery
    results: Annotated[tuple[SearchResultItem, ...], Field(strict=False)]
    total_count: Count
    processing_time: Milliseconds
    strategies: SearchStrategyMetrics

    @model_validator(mode="after")
    def _check_scores(self) -> SearchResult:
        rules = tuple(self._fixed_scores())
        for place, item in enumerate(self.results):
            for key, allowed, rule in rules:
                if getattr(item.relevance, key) != allowed:
                    raise PydanticCustomError(
                        "result_scores",
                        "results.{place}.relevance.{key} {rule}",
                        {"place": place, "key": key, "rule": rule},
                    )
        return self

    def _fixed_scores(self) -> Iterator[tuple[str, float | None, str]]:
        """Scores that are the same for every result, with their value and the reason."""
        for name in SINGLE_STRATEGIES:
            if not getattr(self.strategies, name).enabled:
                yield name, 0, f"must be 0, as strategies.{name}.enabled is false"
        if not self.query.options.rerank_enabled:
            yield "rerank", None, "must be null, as query.options.rerankEnabled is false"
        if not self.query.options.crag_enabled:
            yield "crag", None, "must be null, as query.options.cragEnabled is false"
