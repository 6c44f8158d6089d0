"""How a system collapses the chunks of its lists to their documents."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from fusion_bench.config.models import Rank, StrictModel
from fusion_bench.config.parameters import Parameter, choice, integer
from fusion_bench.data.ordering import ChunkScore
from fusion_bench.methods.fuse.rrf import DEFAULT_K, RankConstant

Name: TypeAlias = Annotated[str, Field(min_length=1)]
#: Where the chunks are collapsed: each list before the fusion, the fused or the final list.
Place: TypeAlias = Literal["each list", "fused", "reranked"]


class ParentRule(StrictModel):
    """Where the parent of a chunk is found: exactly one of field, column and split.

    Attributes:
        field: A field of its line in ``documents.jsonl``.
        column: A column of the lists.
        split: The separator between the parts of its id.
        part: The part of its id that is the parent's, from 0; negative = from the end.
    """

    field: Name | None = None
    column: Name | None = None
    split: Name | None = None
    part: int = 0

    def split_id(self, name: str) -> str | None:
        """Return the part of an id that is its parent's; None if the id has no such part."""
        parts = name.split(self.split or None)
        inside = len(parts) > 1 and -len(parts) <= self.part < len(parts)
        return parts[self.part] or None if inside else None

    def check_choice(self) -> None:
        """Refuse two places at once, or none.

        Raises:
            ValueError: The rule is none.
        """
        if (self.field, self.column, self.split).count(None) != 2:
            raise ValueError("by: write exactly one of field, column and split: {split: '#'}")
        if self.part and self.split is None:
            raise ValueError("by: part is read only with split: leave part out, or write split")

    @model_serializer(mode="wrap")
    def _omit_unused(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = {"part"} if self.split is None else set()
        data = serialize(self)
        return {key: data[key] for key in data if key not in unused and data[key] is not None}


class Collapse(StrictModel):
    """How chunks become documents.

    Attributes:
        by: The parent of a chunk: ``parent`` = the column ``parent`` of the lists, else the field
            ``parent`` of ``documents.jsonl``; ``id`` = its id, which a list repeats; or a field, a
            column, or a part of the id.
        place: Where chunks are collapsed: in each list, in the fused or in the reranked list.
        keep: Keep so many chunks of each document, the best ones; results are chunks.
        score: The score of a document from its chunks; results are documents.
        k: Flattens the difference between neighboring ranks for ``score: rrf``.
        orphans: A chunk without a parent is an error, or its own parent (``own``).
    """

    by: Literal["parent", "id"] | ParentRule
    place: Place = "fused"
    keep: Rank | None = None
    score: ChunkScore | None = None
    k: RankConstant = DEFAULT_K
    orphans: Literal["error", "own"] = "error"

    @property
    def rule(self) -> str:
        """Where parents are found, as YAML writes it."""
        if isinstance(self.by, str):
            return self.by
        parts = (f"{key}: {value!r}" for key, value in self.by.model_dump().items())
        return f"{{{', '.join(parts)}}}"

    @property
    def names(self) -> tuple[str | None, str | None]:
        """The field of documents and the column of lists that may name parents."""
        if isinstance(self.by, ParentRule):
            return self.by.field, self.by.column
        return (self.by, self.by) if self.by == "parent" else (None, None)

    @model_validator(mode="after")
    def _check_rule(self) -> Collapse:
        if (self.keep is None) == (self.score is None):
            raise ValueError(
                "write exactly one of keep and score: keep: 1 returns the best chunk of each "
                "document, score: max returns the documents"
            )
        if self.score != "rrf" and self.k != DEFAULT_K:
            raise ValueError("k is read only with score: rrf: leave k out, or write score: rrf")
        if isinstance(self.by, ParentRule):
            self.by.check_choice()
        if self.by == "id" and (self.place != "each list" or self.score is None):
            raise ValueError(
                "by: id merges rows of one id, so it needs place: each list and a score: write "
                "place: each list and score: max"
            )
        return self

    def space(self, *, is_reranked: bool) -> tuple[Parameter, ...]:
        """Return what a search varies: the place, and how many chunks are kept or the score.

        Args:
            is_reranked: Whether the fused list and the final one differ.
        """
        if self.by == "id":
            return ()  # rows are merged as a list is read, before any trial
        places = [name for name in get_args(Place) if is_reranked or name != "reranked"]
        place = choice("place", *dict.fromkeys((self.place, *places)))
        if self.keep is not None:
            return place, integer("keep", 1, max(5, self.keep))
        score = choice("score", *dict.fromkeys((self.score, "max", "sum", "rrf")))
        k = integer("k", 1, 1000, log=True).add_condition("score", "rrf")
        return place, score, k
