"""What a search returned: items, their scores, what production computes from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum, isfinite, isnan
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic.json_schema import models_json_schema
from pydantic_core import PydanticCustomError

from fusion_bench.config.json_records import WrittenRecord, describe_properties
from fusion_bench.config.models import CORRECT_FROM, INCORRECT_TO
from fusion_bench.errors import ConfigError
from fusion_bench.schema.query_records import (
    QueryClassification,
    RerankConfig,
    RRFConfig,
    SearchOptions,
    SearchQuery,
    SearchWeights,
)
from fusion_bench.schema.record_fields import (
    SINGLE_STRATEGIES,
    AnyResultType,
    ChunkId,
    CommunityId,
    Count,
    EntityId,
    FileId,
    Milliseconds,
    Record,
    Score,
    SearchResultType,
    SearchStrategy,
    Texts,
)

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
