"""The typed records of a search: its query, its results, its settings (CONV-03-05 1.0.0).

>>> from fusion_bench.schema import SearchFilters, SearchOptions, SearchQuery
>>> query = SearchQuery(text="a", type="local", filters=SearchFilters(), options=SearchOptions())
>>> SearchQuery.from_json(query.to_json()) == query
True
"""

from fusion_bench.schema._base import Record
from fusion_bench.schema.embeddings import to_float32
from fusion_bench.schema.enumerations import QueryType, SearchResultType, SearchStrategy
from fusion_bench.schema.filters import DateRange, SearchFilters
from fusion_bench.schema.ids import ChunkId, CommunityId, EntityId, FileId
from fusion_bench.schema.items import (
    Highlight,
    HighlightOffset,
    SearchResultContent,
    SearchResultItem,
    SearchResultSources,
)
from fusion_bench.schema.query import QueryClassification, SearchOptions, SearchQuery
from fusion_bench.schema.result import SearchResult, SearchStrategyMetrics, StrategyMetric
from fusion_bench.schema.scores import (
    CRAGScore,
    RelevanceScore,
    judge_relevance,
    recommends_web_search,
)
from fusion_bench.schema.settings import RerankConfig, RRFConfig
from fusion_bench.schema.utilities import calculate_rrf_score, normalize_scores, select_results
from fusion_bench.schema.weights import SearchWeights

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
