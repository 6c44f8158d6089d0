"""Dense retrieval: exact search over vectors, stored ones or an encoder's."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError, did_you_mean
from fusion_bench.io.outputs import write_output
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.encoders import TextEncoder
from fusion_bench.models.retrieval import CHUNK, Ranking, SearchContext, SearchTexts, rank_chunks
from fusion_bench.models.stored_answers import AnswerCounts, collect_answers
from fusion_bench.util.files import open_regular
from fusion_bench.util.formatting import pluralize

#: Below this a vector is taken as zero and not scaled up to length one.
SMALLEST_NORM = 1e-12


def embed_texts(
    encoder: TextEncoder,
    texts: Sequence[str],
    kind: Literal["query", "document"],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[FloatArray, AnswerCounts]:
    """Vectors of length one; a blank text is not asked for and has a row of zeros.

    Args:
        encoder: Makes the vectors that the store does not have.
        texts: Shape (N,).
        kind: Which prefix the texts get.
        store: Keeps the vectors.
        on_progress: Called with the number of vectors known, and of all.

    Returns:
        Shape (N, H), and what was asked for; H is 0 where every text is blank.

    Raises:
        ProviderError: The encoder failed; vectors that came before are stored.
        DataError: The vectors are not of one length.
    """
    prefix = encoder.query_prefix if kind == "query" else encoder.document_prefix
    rows = [row for row, text in enumerate(texts) if text.strip()]
    asked = [prefix + texts[row] for row in rows]

    async def collect() -> tuple[list[bytes], AnswerCounts]:
        async with encoder.open_model() as model:
            return await collect_answers(model, asked, store, on_progress)

    values, usage = asyncio.run(collect()) if asked else ([], AnswerCounts())
    widths = {len(value) // 4 for value in values}
    if len(widths) > 1:
        raise DataError(
            f"{store.where}: encoder {encoder.method!r} gave vectors of {min(widths)} and "
            f"{max(widths)} numbers: the model has changed; name another file with --store"
        )
    vectors = np.zeros((len(texts), widths.pop() if widths else 0))
    if rows:
        vectors[rows] = [np.frombuffer(value, dtype="<f4") for value in values]
    return normalize_rows(vectors), usage


def normalize_rows(vectors: FloatArray) -> FloatArray:
    """Each row scaled to length one, a row of zeros as it is; shape (N, H), float64."""
    wide = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(norms > SMALLEST_NORM, norms, 1.0), dtype=np.float64)


#: Array of ids → array of their vectors.
ARRAYS: Final = {"doc_ids": "doc", "query_ids": "query"}
WANTED: Final = "doc_ids (D,), doc (D, H), query_ids (Q,) and query (Q, H)"


@dataclass(frozen=True)
class StoredVectors:
    """Vectors of length one, by id.

    Attributes:
        documents: Document id → vector, shape (H,).
        queries: Query id → vector, shape (H,).
    """

    documents: Mapping[str, FloatArray]
    queries: Mapping[str, FloatArray]


def read_vectors(path: Path) -> StoredVectors:
    """Read an archive with ``doc_ids``, ``doc``, ``query_ids`` and ``query``; a pair may lack.

    Raises:
        DataError: It is no such archive, an id stands twice, or a number is not finite.
    """
    arrays = _read_arrays(path)
    tables = {ids: _read_table(path, arrays, ids, ARRAYS[ids]) for ids in ARRAYS}
    widths = {len(vector) for table in tables.values() for vector in table.values()}
    if not widths:
        raise DataError(f"{path}: no vectors: {WANTED} are needed (found: {', '.join(arrays)})")
    if len(widths) > 1:
        raise DataError(f"{path}: vectors of {min(widths)} and of {max(widths)} numbers: one model")
    return StoredVectors(tables["doc_ids"], tables["query_ids"])


def read_query_vectors(path: Path) -> dict[str, tuple[float, ...]]:
    """Query id → vector as it stands in an archive with ``query_ids`` and ``query``.

    Raises:
        DataError: It is no such archive, an id stands twice, or a number is not finite.
    """
    arrays = _read_arrays(path)
    rows = _read_rows(path, arrays, "query_ids", "query")
    if not rows:
        listed = ", ".join(arrays)
        raise DataError(f"{path}: query_ids (Q,) and query (Q, H) are needed (found: {listed})")
    return {name: tuple(row.tolist()) for name, row in rows.items()}


def _read_arrays(path: Path) -> dict[str, Any]:
    try:
        # Opened here: NumPy leaves a damaged archive open.
        with open_regular(path) as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        near = did_you_mean(path.name, [file.name for file in path.parent.glob("*.npz")])
        raise DataError(f"{path}: no such file{near or ': check the path'}") from None
    except (OSError, ValueError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        # NumPy takes every other file for a pickle, and advises to load it unsafely.
        first = (str(error) or type(error).__name__).splitlines()[0]
        problem = "another kind of file" if "pickled" in first else first
        raise DataError(
            f"{path}: not a NumPy archive (.npz) of numbers and texts: {problem}"
        ) from None


def _read_table(
    path: Path, arrays: Mapping[str, Any], ids: str, vectors: str
) -> dict[str, FloatArray]:
    """Id → vector of length one."""
    rows = _read_rows(path, arrays, ids, vectors)
    normalized = normalize_rows(np.array([*rows.values()])) if rows else ()
    return dict(zip(rows, normalized, strict=True))


def _read_rows(
    path: Path, arrays: Mapping[str, Any], ids: str, vectors: str
) -> dict[str, FloatArray]:
    """Id → vector as it stands in the archive."""
    if (ids in arrays) != (vectors in arrays):
        given = ids if ids in arrays else vectors
        raise DataError(f"{path}: {given!r} alone: {ids!r} and {vectors!r} belong together")
    if ids not in arrays:
        return {}
    names, values = arrays[ids], arrays[vectors]
    if names.dtype.kind != "U" or names.ndim != 1:
        raise DataError(
            f"{path}: {ids!r} of type {names.dtype} and shape {names.shape}: a list of texts is "
            "needed"
        )
    if values.dtype.kind != "f" or values.ndim != 2 or len(values) != len(names):
        raise DataError(
            f"{path}: {vectors!r} of type {values.dtype} and shape {values.shape} for "
            f"{len(names)} ids: one row of floating-point numbers each is needed"
        )
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        first = str(names[np.argmin(finite)])
        raise DataError(f"{path}: {vectors!r}: the vector of {first!r} is not finite")
    table = dict(zip(names.tolist(), values, strict=True))
    if len(table) < len(names):
        distinct, counts = np.unique(names, return_counts=True)
        raise DataError(f"{path}: {ids!r}: {str(distinct[np.argmax(counts > 1)])!r} stands twice")
    return table


def write_vectors(
    path: Path,
    documents: Mapping[str, FloatArray],
    queries: Mapping[str, FloatArray],
) -> Path:
    """Write what :func:`read_vectors` reads, as 32-bit numbers.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    out = io.BytesIO()
    arrays = {
        name: values
        for ids, vectors, table in (
            ("doc_ids", "doc", documents),
            ("query_ids", "query", queries),
        )
        for name, values in (
            (ids, np.array([*table], dtype=np.str_)),
            (vectors, np.array([*table.values()], dtype=np.float32)),
        )
        if table
    }
    np.savez(out, **arrays)  # type: ignore[arg-type] # its stubs take the names for options
    return write_output(path, out.getvalue(), option="--save-vectors")


def cosine_chunks(queries: FloatArray, documents: FloatArray) -> Iterator[FloatArray]:
    """Cosines of queries (Q, H) with documents (D, H), some queries at a time; (q, D) each.

    Vectors are of length one; none at all has cosine 0 with everything.

    Raises:
        DataError: Vectors of queries and documents are not equally long.
    """
    widths = queries.shape[1], documents.shape[1]
    if 0 not in widths and widths[0] != widths[1]:
        raise DataError(
            f"vectors of queries have {widths[0]} numbers and those of documents {widths[1]}: "
            "both must come from one model"
        )
    for start in range(0, len(queries), CHUNK):
        rows = queries[start : start + CHUNK]
        yield np.zeros((len(rows), len(documents))) if 0 in widths else rows @ documents.T


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
