"""One result: what it says, where it comes from, why it matched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from fusion_bench.schema._base import Count, Record, Score, Texts
from fusion_bench.schema.enumerations import AnyResultType, SearchResultType
from fusion_bench.schema.ids import ChunkId, CommunityId, EntityId, FileId
from fusion_bench.schema.scores import RelevanceScore


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
