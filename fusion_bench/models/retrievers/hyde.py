"""HyDE (Gao et al. 2022): search densely with a passage that would answer the query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.json_objects import read_objects, require_text
from fusion_bench.io.outputs import write_output
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.retrieval import Ranking, SearchContext, SearchTexts
from fusion_bench.models.retrievers.dense import VectorSource, rank_vectors
from fusion_bench.models.stored_answers import AnswerCounts, PassageWriter, collect_answers
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.json_text import encode_json_lines


def read_passages(path: Path, field: str, queries: Mapping[str, str]) -> dict[str, str]:
    """The stored passage of each query.

    Args:
        path: JSON Lines with ``id`` (or ``_id``) and the field.
        field: The key of the passage.
        queries: Query id → text; only the ids are read.

    Raises:
        DataError: A line without an id, an id given twice, or a query without a passage.
    """
    passages: dict[str, str] = {}
    keys: set[str] = set()
    for number, item in read_objects(path):
        where = f"{path}:{number}"
        given = item.get("id", item.get("_id"))
        if given in (None, ""):
            raise DataError(f"{where}: an 'id' is needed (found: {', '.join(item) or 'nothing'})")
        name = require_text(given, "id", where)
        if name in passages:
            raise DataError(f"{where}: query {name!r} stands twice: keep one")
        keys |= item.keys()
        value = item.get(field)
        passages[name] = "" if value is None else require_text(value, field, where)
    missing = [query for query in queries if not passages.get(query, "").strip()]
    if missing:
        raise DataError(
            f"{path}: {pluralize(len(missing), 'query')} without a passage under {field!r} (for "
            f"example {missing[0]!r}; keys of the file: {', '.join(sorted(keys)) or 'none'})"
        )
    return {query: passages[query] for query in queries}


def write_passages(
    writer: PassageWriter,
    queries: Mapping[str, str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[dict[str, str], AnswerCounts]:
    """A passage for each query, from the store or from the model.

    Raises:
        ConfigError: The key is missing, or the prompt is wrong.
        ProviderError: A call failed for good; passages that came before are stored.
    """

    async def collect() -> tuple[list[bytes], AnswerCounts]:
        async with writer.open_model() as model:
            return await collect_answers(model, [*queries.values()], store, on_progress)

    values, usage = asyncio.run(collect())
    passages = {query: value.decode() for query, value in zip(queries, values, strict=True)}
    return passages, usage


def save_passages(path: Path, passages: Mapping[str, str], field: str) -> Path:
    """Write what :func:`read_passages` reads.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    rows = ({"id": query, field: passage} for query, passage in passages.items())
    return write_output(path, encode_json_lines(rows), option="--save-passages")


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
