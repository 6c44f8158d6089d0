"""The typed records of a search: its query, its results, its settings (CONV-03-05 1.0.0).

>>> from fusion_bench.schema import SearchFilters, SearchOptions, SearchQuery
>>> query = SearchQuery(text="a", type="local", filters=SearchFilters(), options=SearchOptions())
>>> SearchQuery.from_json(query.to_json()) == query
True
"""

from fusion_bench.schema.record_fields import (
    ChunkId,
    CommunityId,
    EntityId,
    FileId,
    QueryType,
    Record,
    SearchResultType,
    SearchStrategy,
    to_float32,
)
from fusion_bench.schema.search_records import (
    CRAGScore,
    DateRange,
    Highlight,
    HighlightOffset,
    QueryClassification,
    RelevanceScore,
    RerankConfig,
    RRFConfig,
    SearchFilters,
    SearchOptions,
    SearchQuery,
    SearchResult,
    SearchResultContent,
    SearchResultItem,
    SearchResultSources,
    SearchStrategyMetrics,
    SearchWeights,
    StrategyMetric,
    calculate_rrf_score,
    judge_relevance,
    normalize_scores,
    recommends_web_search,
    select_results,
)

__all__ = [
    "CRAGScore",
    "ChunkId",
    "CommunityId",
    "DateRange",
    "EntityId",
    "FileId",
    "Highlight",
    "HighlightOffset",
    "QueryClassification",
    "QueryType",
    "RRFConfig",
    "Record",
    "RelevanceScore",
    "RerankConfig",
    "SearchFilters",
    "SearchOptions",
    "SearchQuery",
    "SearchResult",
    "SearchResultContent",
    "SearchResultItem",
    "SearchResultSources",
    "SearchResultType",
    "SearchStrategy",
    "SearchStrategyMetrics",
    "SearchWeights",
    "StrategyMetric",
    "calculate_rrf_score",
    "judge_relevance",
    "normalize_scores",
    "recommends_web_search",
    "select_results",
    "to_float32",
]
