"""A walk over a graph of entities and documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from fusion_bench.retrieve.common import Ranking, rank_chunks, score_chunks
from fusion_bench.retrieve.graph_files import (
    GraphIndex,
    GraphRules,
    read_entities,
    read_relations,
)
from fusion_bench.retrieve.methods._base import SearchContext
from fusion_bench.retrieve.texts import SearchTexts


@dataclass(frozen=True)
class GraphRetriever:
    """Documents by personalized PageRank from the entities that the query names.

    Attributes:
        entities: JSON Lines of entities.
        relations: JSON Lines of relations; None = only entities and documents are linked.
        rules: How they are linked and walked.
    """

    name: ClassVar[str] = "graph"
    roles: ClassVar[tuple[str, ...]] = ("graph",)

    entities: Path
    relations: Path | None = None
    rules: GraphRules = field(default_factory=GraphRules)

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        files = {
            "entities": str(self.entities),
            "relations": None if self.relations is None else str(self.relations),
        }
        return {"method": "graph", **files, **asdict(self.rules)}

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query that names an entity."""
        context.on_progress("linking entities", 0, 1)
        entities = read_entities(self.entities, texts.documents)
        relations = (
            []
            if self.relations is None
            else read_relations(self.relations, entities, texts.documents)
        )
        index = GraphIndex(texts.documents, entities, relations, self.rules)
        rankings = rank_chunks(
            index.ids,
            score_chunks(index, [*texts.queries.values()]),
            depth=depth,
            above=0.0,
            on_progress=context.report_queries(len(texts.queries)),
        )
        return dict(zip(texts.queries, rankings, strict=True))
