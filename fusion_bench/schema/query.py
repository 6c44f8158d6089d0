"""What is searched for, and how."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fusion_bench.config.query_types import type_of
from fusion_bench.schema._base import Count, Record, Score, Texts
from fusion_bench.schema.embeddings import EmbeddingField, Vector
from fusion_bench.schema.enumerations import AnyQueryType, AnyStrategy, QueryType, SearchStrategy
from fusion_bench.schema.filters import SearchFilters
from fusion_bench.schema.weights import DEFAULT_WEIGHTS, SearchWeights


class SearchOptions(Record):
    """How a search runs (REQ-TYPE-004).

    Attributes:
        limit: Most results.
        offset: Results that are skipped first.
        include_metadata: Whether results bring their metadata.
        include_highlights: Whether results bring their highlights.
        rerank_enabled: Whether a reranker runs.
        crag_enabled: Whether results are judged as CRAG does.
        strategies: What runs; ``hybrid`` = all three, fused.
        weights: What each strategy counts.
    """

    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Count = 0
    include_metadata: bool = True
    include_highlights: bool = True
    rerank_enabled: bool = True
    crag_enabled: bool = False
    strategies: Annotated[tuple[AnyStrategy, ...], Field(min_length=1, strict=False)] = (
        SearchStrategy.HYBRID,
    )
    weights: SearchWeights = DEFAULT_WEIGHTS

    @property
    def active_weights(self) -> SearchWeights:
        """The weights with 0 for each strategy that does not run.

        Raises:
            ConfigError: The strategies that run weigh 0.
        """
        return self.weights.restrict(self.strategies)


class SearchQuery(Record):
    """One request (REQ-TYPE-001).

    Attributes:
        text: What was asked, 1 to 1,000 characters.
        type: What kind of question it is.
        embedding: Its vector; None = computed when the search runs.
        filters: What a result must be.
        options: How the search runs.
    """

    text: Annotated[str, Field(min_length=1, max_length=1000)]
    type: AnyQueryType
    embedding: Annotated[Vector, EmbeddingField] | None = None
    filters: SearchFilters
    options: SearchOptions

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, the embedding number by number."""
        return isinstance(other, SearchQuery) and self._content == other._content

    def __hash__(self) -> int:
        """Equal queries have equal hashes."""
        return hash(self._content)

    @property
    def _content(self) -> tuple[object, ...]:
        vector = None if self.embedding is None else self.embedding.tobytes()
        return (self.text, self.type, vector, self.filters, self.options)


class QueryClassification(Record):
    """What a classifier says of a query (REQ-TYPE-006).

    Attributes:
        original_query: The query's text.
        type: The type it takes it for.
        confidence: How sure it is.
        extracted_entities: Names of entities in the query.
        suggested_weights: Weights for such a query.
        expanded_queries: The query in other words.
    """

    original_query: str
    type: AnyQueryType
    confidence: Score
    extracted_entities: Texts
    suggested_weights: SearchWeights
    expanded_queries: Texts

    @property
    def sure_type(self) -> QueryType:
        """The type to search with: ``hybrid`` below a confidence of 0.7."""
        return QueryType(type_of(self.type, self.confidence, QueryType))
