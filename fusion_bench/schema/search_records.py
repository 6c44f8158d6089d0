"""The records of a search: what is searched for, what was returned, what is computed from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import fsum, isfinite, isnan
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic.json_schema import models_json_schema
from pydantic_core import PydanticCustomError

from fusion_bench.config.json_records import WrittenRecord, describe_properties
from fusion_bench.config.models import CORRECT_FROM, INCORRECT_TO
from fusion_bench.config.query_types import CONV_03_05, SUM_TOLERANCE, type_of
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.schema.record_fields import (
    SINGLE_STRATEGIES,
    AnyQueryType,
    AnyResultType,
    AnyStrategy,
    ChunkId,
    CommunityId,
    Count,
    EmbeddingField,
    EntityId,
    FileId,
    Milliseconds,
    QueryType,
    Record,
    Score,
    SearchResultType,
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

    @property
    def inactive_strategies(self) -> tuple[str, ...]:
        """The strategies that do not run."""
        if SearchStrategy.HYBRID in self.strategies:
            return ()
        return tuple(str(name) for name in SINGLE_STRATEGIES if name not in self.strategies)


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
        """The bench's fusion that computes it, for sources with the roles of the strategies."""
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


Relevance: TypeAlias = Literal["correct", "incorrect", "ambiguous"]


class CRAGScore(Record):
    """What corrective RAG says of a result (REQ-TYPE-010).

    Attributes:
        relevance: Its verdict.
        confidence: How sure it is.
        needs_web_search: Whether a web search should help out.
        refined_query: A better query; None = no proposal.
    """

    relevance: Relevance
    confidence: Score
    needs_web_search: bool
    refined_query: str | None = None

    @classmethod
    def of_score(cls, score: float, *, refined_query: str | None = None) -> CRAGScore:
        """The verdict on a score, with the web search that CONV-03-05 recommends.

        Args:
            score: 0 to 1; also taken as the confidence.
            refined_query: A better query, where there is one.

        Raises:
            ValidationError: The score is outside.
        """
        relevance = judge_relevance(score)
        return cls(
            relevance=relevance,
            confidence=score,
            needs_web_search=recommends_web_search(relevance),
            refined_query=refined_query,
        )


class RelevanceScore(Record):
    """The score of a result, and what it was made from (REQ-TYPE-009).

    Attributes:
        combined: After fusion.
        keyword: Normalized BM25 score; 0 = keyword search does not run or does not return it.
        semantic: Cosine similarity; 0 likewise.
        graph: Centrality in the graph; 0 likewise.
        rerank: The reranker's score; None = not reranked.
        crag: What corrective RAG says; None = not judged.
    """

    combined: Score
    keyword: Score
    semantic: Score
    graph: Score
    rerank: Score | None = None
    crag: CRAGScore | None = None


def judge_relevance(score: float) -> Relevance:
    """``correct`` from 0.7, ``incorrect`` up to 0.3, ``ambiguous`` between them.

    Raises:
        ConfigError: The score is NaN.
    """
    if isnan(score):
        raise ConfigError(
            "score: a number is needed, given nan: a result without one has no verdict"
        )
    if score >= CORRECT_FROM:
        return "correct"
    return "incorrect" if score <= INCORRECT_TO else "ambiguous"


def recommends_web_search(relevance: Relevance) -> bool:
    """Whether a web search is recommended: for all but ``correct``."""
    return relevance != "correct"


class HighlightOffset(Record):
    """Where a match stands, in characters (REQ-TYPE-013).

    Attributes:
        start: Its first character, from 0.
        end: The character after its last.
    """

    start: Count
    end: Count

    @model_validator(mode="after")
    def _check_order(self) -> HighlightOffset:
        if self.start >= self.end:
            raise PydanticCustomError("offset_order", "start must be before end")
        return self


class Highlight(Record):
    """A piece of text with its matches (REQ-TYPE-012).

    Attributes:
        field: The field that matched.
        fragment: The piece.
        offsets: Where the matches stand.
    """

    field: str
    fragment: str
    offsets: Annotated[tuple[HighlightOffset, ...], Field(strict=False)]


class SearchResultContent(Record):
    """The text of a result (REQ-TYPE-011).

    Attributes:
        text: The text itself.
        summary: In short; None = there is none.
        context_before: What stands before it; None = not known.
        context_after: What stands after it; None = not known.
    """

    text: str
    summary: str | None = None
    context_before: str | None = None
    context_after: str | None = None


class SearchResultSources(Record):
    """Where a result comes from (REQ-TYPE-014).

    Attributes:
        chunk_id: The chunk; None = it is none.
        file_id: The file; None = not known.
        entity_ids: Entities that it is about.
        community_id: The cluster of entities; None = it is none.
        relation_ids: Relations that it is about.
    """

    chunk_id: ChunkId | None = None
    file_id: FileId | None = None
    entity_ids: Annotated[tuple[EntityId, ...], Field(strict=False)]
    community_id: CommunityId | None = None
    relation_ids: Texts

    if TYPE_CHECKING:  # so that a type checker refuses ids of another kind

        def __init__(
            self,
            *,
            entity_ids: Sequence[EntityId],
            relation_ids: Sequence[str],
            chunk_id: ChunkId | None = None,
            file_id: FileId | None = None,
            community_id: CommunityId | None = None,
        ) -> None: ...


class SearchResultItem(Record):
    """One result (REQ-TYPE-008).

    Attributes:
        id: Its id.
        type: What it is.
        score: Its final score.
        relevance: What the score was made from.
        content: Its text.
        highlights: What matched.
        sources: Where it comes from; a chunk has its chunk, an entity at least one entity, a
            community its cluster.
    """

    id: Annotated[str, Field(min_length=1)]
    type: AnyResultType
    score: Score
    relevance: RelevanceScore
    content: SearchResultContent
    highlights: Annotated[tuple[Highlight, ...], Field(strict=False)]
    sources: SearchResultSources

    @model_validator(mode="after")
    def _check_sources(self) -> SearchResultItem:
        needed = {
            SearchResultType.CHUNK: ("chunkId", self.sources.chunk_id),
            SearchResultType.ENTITY: ("entityIds", self.sources.entity_ids),
            SearchResultType.COMMUNITY: ("communityId", self.sources.community_id),
        }
        key, value = needed[self.type]
        if not value:
            raise PydanticCustomError(
                "sources",
                "sources.{key} is required for a result of type {kind}",
                {"key": key, "kind": str(self.type)},
            )
        return self


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


#: Every other record is part of one of these.
ROOTS: tuple[type[Record], ...] = (SearchResult, QueryClassification, RRFConfig, RerankConfig)


def build_search_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a search's result; ``$defs`` has all types by name.

    It says what is read: keys with a default may be left out. Rules between several keys, such as
    the sum of the weights, are checked when a record is read.
    """
    _, schema = models_json_schema([(model, "validation") for model in ROOTS])
    for record in schema["$defs"].values():
        describe_properties(record)
        for value in record.get("properties", {}).values():
            value.pop("title", None)
    reference = f"#/$defs/{SearchResult.__name__}"
    return {"$schema": WrittenRecord.schema_dialect, "$ref": reference, **schema}
