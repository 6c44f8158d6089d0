"""What is searched for: the query, its filters, the weights of its strategies, fusion settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from fusion_bench.config.query_types import CONV_03_05, SUM_TOLERANCE, type_of
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.schema.record_fields import (
    SINGLE_STRATEGIES,
    AnyQueryType,
    AnyStrategy,
    Count,
    EmbeddingField,
    FileId,
    QueryType,
    Record,
    Score,
    SearchStrategy,
    Texts,
    Vector,
)

#: Rounding of a sum that is off by exactly the tolerance.
ROUNDING = 1e-9


class SearchWeights(Record):
    """What each strategy counts in the fusion (REQ-TYPE-005); they add up to 1 ± 0.01.

    Attributes:
        keyword: Weight of keyword search.
        semantic: Weight of semantic search.
        graph: Weight of graph search.
    """

    keyword: Score
    semantic: Score
    graph: Score

    @model_validator(mode="after")
    def _check_sum(self) -> SearchWeights:
        if abs(self.keyword + self.semantic + self.graph - 1) > SUM_TOLERANCE + ROUNDING:
            raise PydanticCustomError("weights_sum", "Weights must sum to 1.0")
        return self

    @classmethod
    def of_type(cls, query_type: QueryType) -> SearchWeights:
        """The weights that CONV-03-05 suggests for queries of a type.

        Raises:
            UnknownNameError: There is no such type.
        """
        if query_type not in CONV_03_05:
            raise UnknownNameError("query type", query_type, CONV_03_05, where="of_type")
        return cls(**CONV_03_05[query_type])

    def restrict(self, strategies: Collection[SearchStrategy]) -> SearchWeights:
        """The weights where only these strategies run: 0 for the others, the rest adds up to 1.

        Args:
            strategies: Those in use; ``hybrid`` means all three.

        Raises:
            ConfigError: All of them weigh 0.
        """
        if SearchStrategy.HYBRID in strategies:
            return self
        kept = {str(name): getattr(self, name) for name in SINGLE_STRATEGIES if name in strategies}
        total = sum(kept.values())
        if total <= 0:
            raise ConfigError(
                f"weights: the strategies in use weigh 0 ({', '.join(kept) or 'none is in use'}): "
                "give one of them a weight above 0"
            )
        shares = {name: kept.get(name, 0.0) / total for name in map(str, SINGLE_STRATEGIES)}
        return SearchWeights(**shares)


#: Of a search that says nothing of its weights.
DEFAULT_WEIGHTS = SearchWeights.of_type(QueryType.LOCAL)


def _read_moment(value: object) -> object:
    """A text as the moment that it means; pydantic takes ``"2024"`` for seconds since 1970."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise PydanticCustomError(
                "moment", "a date or time is needed, such as 2024-01-31T09:30:00Z"
            ) from None
    return _set_zone(value) if isinstance(value, datetime) else value


def _set_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


#: A moment, or its text in ISO 8601; without a zone it is UTC, as a day is in JavaScript.
Moment: TypeAlias = Annotated[datetime, BeforeValidator(_read_moment)]
#: The least relevance of a result, where a search does not say.
MIN_RELEVANCE = 0.3


class DateRange(Record):
    """From one moment to another, both included (REQ-TYPE-003).

    A date without a time is its first moment in UTC, as JavaScript's ``Date`` reads it:
    ``2024-12-31`` as the end leaves out noon of that day, ``2024-12-31T23:59:59.999Z`` does not.

    Attributes:
        start: The first moment; None = open.
        end: The last moment; None = open.
    """

    start: Moment | None = None
    end: Moment | None = None

    @model_validator(mode="after")
    def _check_order(self) -> DateRange:
        if self.start is not None and self.end is not None and self.start > self.end:
            raise PydanticCustomError("date_range", "start must be before or equal to end")
        return self

    def contains(self, moment: datetime) -> bool:
        """Whether a moment lies in it.

        Raises:
            ConfigError: It is no ``datetime``.
        """
        if not isinstance(moment, datetime):
            raise ConfigError(
                f"contains: a datetime is needed, given {moment!r}: read a text with "
                "datetime.fromisoformat"
            )
        moment = _set_zone(moment)
        is_early = self.start is not None and moment < self.start
        is_late = self.end is not None and moment > self.end
        return not (is_early or is_late)


class SearchFilters(Record):
    """What a result must be to count (REQ-TYPE-002).

    Attributes:
        file_ids: Files to search in; None or empty = all.
        entity_types: Types of entities to search for; None = all.
        date_range: When; None = ever.
        min_relevance: Results that score below this are dropped.
    """

    file_ids: Annotated[tuple[FileId, ...], Field(strict=False)] | None = None
    entity_types: Texts | None = None
    date_range: DateRange | None = None
    min_relevance: Score = MIN_RELEVANCE

    if TYPE_CHECKING:  # so that a type checker refuses ids of another kind

        def __init__(
            self,
            *,
            file_ids: Sequence[FileId] | None = None,
            entity_types: Sequence[str] | None = None,
            date_range: DateRange | None = None,
            min_relevance: float = MIN_RELEVANCE,
        ) -> None: ...

    def accepts_file(self, file_id: FileId) -> bool:
        """Whether a file is searched."""
        return not self.file_ids or file_id in self.file_ids


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


class RRFConfig(Record):
    """Reciprocal rank fusion (REQ-TYPE-017).

    Attributes:
        k: The greater, the less a difference of ranks counts.
        normalize_scores: Whether scores are divided by 3/(k+1) and cut at 1.
    """

    k: Annotated[int, Field(ge=1, le=1000)] = 60
    normalize_scores: bool = True

    def to_fusion(self, weights: SearchWeights) -> RRF:
        """The same as a fusion of the bench, for sources with the roles of the strategies."""
        return RRF(
            k=self.k,
            normalize="three_lists" if self.normalize_scores else "none",
            weights=weights.model_dump(),
        )


class RerankConfig(Record):
    """Reranking (REQ-TYPE-018).

    Attributes:
        enabled: Whether a reranker runs.
        model: Its name.
        top_k: How many results it scores.
        batch_size: How many it scores in one call.
    """

    enabled: bool = True
    model: str = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    top_k: Annotated[int, Field(ge=1, le=100)] = 50
    batch_size: Annotated[int, Field(ge=1, le=32)] = 16

    def count_candidates(self, results: int) -> int:
        """How many of this many results are scored: at most ``top_k``, none where it is off."""
        return min(self.top_k, results) if self.enabled else 0
