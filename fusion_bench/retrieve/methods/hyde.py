"""HyDE (Gao et al. 2022): search densely with a passage that would answer the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fusion_bench.errors import ConfigError
from fusion_bench.retrieve.answers.chat import PassageWriter
from fusion_bench.retrieve.common import Ranking
from fusion_bench.retrieve.methods._base import SearchContext
from fusion_bench.retrieve.methods.dense import VectorSource, rank_vectors
from fusion_bench.retrieve.passages import read_passages, save_passages, write_passages
from fusion_bench.retrieve.texts import SearchTexts


@dataclass(frozen=True)
class HydeRetriever:
    """Documents by the cosine of their vector with the passage's.

    A passage is encoded with the encoder's ``document_prefix``: it stands for a document.

    Attributes:
        source: Where the vectors come from; only those of documents may be stored.
        writer: Writes the passages; None = they are replayed.
        field: Key of the passages in their file.
        passages: The file of stored passages; None = that of the queries.
        save: File to write the passages to; None = none.
    """

    name: ClassVar[str] = "hyde"
    roles: ClassVar[tuple[str, ...]] = ("hyde", "semantic")

    source: VectorSource
    writer: PassageWriter | None = None
    field: str = "hyde"
    passages: Path | None = None
    save: Path | None = None

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        if self.writer is None:
            given = None if self.passages is None else str(self.passages)
            passages: dict[str, Any] = {"passages": given, "field": self.field}
        else:
            passages = {"writer": self.writer.model_dump(mode="json")}
        return {"method": "hyde", **self.source.describe(), **passages}

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query."""
        if self.source.encoder is None:
            raise ConfigError(
                "the passages need an encoder: name that of the stored vectors with --encoder"
            )
        stored = self.source.read_stored()
        passages = self._find_passages(texts, context)
        if self.save is not None:
            save_passages(self.save, passages, self.field)
        queries = self.source.find_vectors(passages, {}, "document", context)
        context.usage["passage vectors"] = context.usage.pop("document vectors")
        documents = self.source.find_vectors(texts.documents, stored.documents, "document", context)
        return rank_vectors(texts, documents, queries, depth, context)

    def _find_passages(self, texts: SearchTexts, context: SearchContext) -> dict[str, str]:
        if self.writer is None:
            return read_passages(self.passages or texts.queries_file, self.field, texts.queries)
        passages, usage = write_passages(
            self.writer, texts.queries, context.store, context.report_stage("writing passages")
        )
        context.usage["passages"] = usage
        return passages
