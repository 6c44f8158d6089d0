"""Dense retrieval: exact search over vectors, stored ones or an encoder's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.retrieve.common import Ranking, rank_chunks
from fusion_bench.retrieve.embed import embed_texts
from fusion_bench.retrieve.encoders import TextEncoder
from fusion_bench.retrieve.methods._base import SearchContext
from fusion_bench.retrieve.texts import SearchTexts
from fusion_bench.retrieve.vectors import (
    StoredVectors,
    cosine_chunks,
    read_vectors,
    write_vectors,
)
from fusion_bench.util.formatting import pluralize

#: What is done now, by the kind of the texts.
STAGES = {"document": "encoding documents", "query": "encoding queries"}


@dataclass(frozen=True)
class VectorSource:
    """Where vectors come from.

    Attributes:
        encoder: Makes those that are not stored; None = all must be.
        stored: Archive of vectors; None = there is none.
    """

    encoder: TextEncoder | None
    stored: Path | None = None

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        encoder = None if self.encoder is None else self.encoder.model_dump(mode="json")
        return {"encoder": encoder, "vectors": None if self.stored is None else str(self.stored)}

    def read_stored(self) -> StoredVectors:
        """The stored vectors.

        Raises:
            ConfigError: Neither an encoder nor an archive is named.
            DataError: The archive breaks a rule.
        """
        if self.encoder is None and self.stored is None:
            raise ConfigError("no vectors: name an --encoder, or a file of --vectors")
        return StoredVectors({}, {}) if self.stored is None else read_vectors(self.stored)

    def find_vectors(
        self,
        texts: Mapping[str, str],
        stored: Mapping[str, FloatArray],
        kind: Literal["document", "query"],
        context: SearchContext,
    ) -> FloatArray:
        """The vector of each text, shape (N, H): the stored one, or the encoder's.

        Raises:
            DataError: One is not stored, and there is no encoder; or they are not of one length.
        """
        missing = {name: text for name, text in texts.items() if name not in stored}
        made: dict[str, FloatArray] = {}
        if missing and self.encoder is None:
            raise DataError(
                f"{self.stored}: no vector of {pluralize(len(missing), kind)} (for example "
                f"{next(iter(missing))!r}): name the encoder of the others with --encoder"
            )
        if missing and self.encoder is not None:
            stage = context.report_stage(STAGES[kind])
            vectors, usage = embed_texts(
                self.encoder, [*missing.values()], kind, context.store, stage
            )
            context.usage[f"{kind} vectors"] = usage
            made = dict(zip(missing, vectors, strict=True))
        rows = [made[name] if name in made else stored[name] for name in texts]
        widths = sorted({len(row) for row in rows})
        if len(widths) > 1:
            raise DataError(
                f"{self.stored}: its vectors and those of encoder "
                f"{self.encoder.method if self.encoder else ''!r} have {widths[0]} and "
                f"{widths[1]} numbers: both must come from one model"
            )
        return np.array(rows).reshape(len(rows), widths[0] if widths else 0)


@dataclass(frozen=True)
class DenseRetriever:
    """Documents by the cosine of their vector with the query's.

    Attributes:
        source: Where the vectors come from.
        save: Archive to write the vectors to; None = none.
    """

    name: ClassVar[str] = "dense"
    roles: ClassVar[tuple[str, ...]] = ("question", "semantic")

    source: VectorSource
    save: Path | None = None

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        return {"method": "dense", **self.source.describe()}

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query."""
        stored = self.source.read_stored()
        documents = self.source.find_vectors(texts.documents, stored.documents, "document", context)
        queries = self.source.find_vectors(texts.queries, stored.queries, "query", context)
        if self.save is not None:
            write_vectors(
                self.save,
                dict(zip(texts.documents, documents, strict=True)),
                dict(zip(texts.queries, queries, strict=True)),
            )
        return rank_vectors(texts, documents, queries, depth, context)


def rank_vectors(
    texts: SearchTexts,
    documents: FloatArray,
    queries: FloatArray,
    depth: int,
    context: SearchContext,
) -> dict[str, Ranking]:
    """Documents by cosine, for vectors (D, H) of the documents and (Q, H) of the queries."""
    rankings = rank_chunks(
        tuple(texts.documents),
        cosine_chunks(queries, documents),
        depth=depth,
        on_progress=context.report_queries(len(texts.queries)),
    )
    return dict(zip(texts.queries, rankings, strict=True))
