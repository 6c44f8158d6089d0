"""Dense retrieval: exact search over vectors, stored ones or an encoder's."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError, did_you_mean
from fusion_bench.io.json_objects import read_objects, refuse_repeated, require_text
from fusion_bench.io.outputs import write_output
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.encoders import TextEncoder
from fusion_bench.models.encoders.local import SMALLEST_NORM
from fusion_bench.models.endpoints import AnswerCounts, PassageWriter, collect_answers
from fusion_bench.models.retrieval import CHUNK, Ranking, SearchContext, SearchTexts
from fusion_bench.util.files import open_regular
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.json_text import encode_json_lines


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
    values, usage = (
        collect_answers(encoder.open_model(), asked, store, on_progress)
        if asked
        else ([], AnswerCounts())
    )
    widths = {len(value) // 4 for value in values}
    if len(widths) > 1:
        raise DataError(
            f"{store.where}: encoder {encoder.method!r} gave vectors of {min(widths)} and "
            f"{max(widths)} numbers: the model has changed; name another file with --store"
        )
    vectors = np.zeros((len(texts), widths.pop() if widths else 0))
    if rows:
        vectors[rows] = [np.frombuffer(value, dtype="<f4") for value in values]
    return _normalize_rows(vectors), usage


def _normalize_rows(vectors: FloatArray) -> FloatArray:
    """Each row scaled to length one, a row of zeros as it is; shape (N, H), float64."""
    wide = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(norms > SMALLEST_NORM, norms, 1.0), dtype=np.float64)


#: Array of ids → array of their vectors.
ARRAYS: Final = {"doc_ids": "doc", "query_ids": "query"}
WANTED: Final = "doc_ids (D,), doc (D, H), query_ids (Q,) and query (Q, H)"


def read_vectors(path: Path) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Read an archive with ``doc_ids``, ``doc``, ``query_ids`` and ``query``; a pair may lack.

    Raises:
        DataError: It is no such archive, an id appears twice, or a number is not finite.
    """
    arrays = _read_arrays(path)
    tables: dict[str, dict[str, FloatArray]] = {}
    for ids, vectors in ARRAYS.items():
        rows = _read_rows(path, arrays, ids, vectors)
        normalized = _normalize_rows(np.array([*rows.values()])) if rows else ()  # of length one
        tables[ids] = dict(zip(rows, normalized, strict=True))
    widths = {len(vector) for table in tables.values() for vector in table.values()}
    if not widths:
        raise DataError(f"{path}: no vectors: {WANTED} are needed (found: {', '.join(arrays)})")
    if len(widths) > 1:
        raise DataError(f"{path}: vectors of {min(widths)} and of {max(widths)} numbers: one model")
    return tables["doc_ids"], tables["query_ids"]


def read_query_vectors(path: Path) -> dict[str, tuple[float, ...]]:
    """Query id → vector as it stands in an archive with ``query_ids`` and ``query``.

    Raises:
        DataError: It is no such archive, an id appears twice, or a number is not finite.
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
        raise DataError(f"{path}: {ids!r}: {str(distinct[np.argmax(counts > 1)])!r} appears twice")
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
    arrays: dict[str, Any] = {}
    for ids, vectors, table in (("doc_ids", "doc", documents), ("query_ids", "query", queries)):
        if table:
            arrays[ids] = np.array([*table], dtype=np.str_)
            arrays[vectors] = np.array([*table.values()], dtype=np.float32)
    np.savez(out, **arrays)
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
            f"vectors of queries have {widths[0]} numbers and vectors of documents {widths[1]}: "
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

    def read_stored(self) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The stored vectors.

        Raises:
            ConfigError: Neither an encoder nor an archive is named.
            DataError: The archive breaks a rule.
        """
        if self.encoder is None and self.stored is None:
            raise ConfigError("no vectors: name an --encoder, or a file of --vectors")
        return ({}, {}) if self.stored is None else read_vectors(self.stored)

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
                f"{self.stored}: its vectors and the vectors of encoder "
                f"{self.encoder.method if self.encoder else ''!r} have {widths[0]} and "
                f"{widths[1]} numbers: both must come from one model"
            )
        return np.array(rows).reshape(len(rows), widths[0] if widths else 0)

    def find_all(self, texts: SearchTexts, context: SearchContext) -> tuple[FloatArray, FloatArray]:
        """Vectors of all documents, then of all queries; see :meth:`find_vectors`."""
        documents, queries = self.read_stored()
        made = self.find_vectors(texts.documents, documents, "document", context)
        return made, self.find_vectors(texts.queries, queries, "query", context)


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
        documents, queries = self.source.find_all(texts, context)
        if self.save is not None:
            write_vectors(
                self.save,
                dict(zip(texts.documents, documents, strict=True)),
                dict(zip(texts.queries, queries, strict=True)),
            )
        return context.rank_queries(
            texts, [*texts.documents], cosine_chunks(queries, documents), depth
        )


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
    for where, item in read_objects(path):
        given = item.get("id", item.get("_id"))
        if given in (None, ""):
            raise DataError(f"{where}: an 'id' is needed (found: {', '.join(item) or 'nothing'})")
        name = require_text(given, "id", where)
        refuse_repeated(name, passages, "query", where)
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
                "the passages need the encoder of the stored vectors: name it with --encoder"
            )
        stored, _ = self.source.read_stored()
        if self.writer is None:
            file = self.passages or texts.queries_file
            passages = read_passages(file, self.field, texts.queries)
        else:
            stage = context.report_stage("writing passages")
            values, context.usage["passages"] = collect_answers(
                self.writer.open_model(), [*texts.queries.values()], context.store, stage
            )
            written = map(bytes.decode, values)
            passages = dict(zip(texts.queries, written, strict=True))
        if self.save is not None:
            save_passages(self.save, passages, self.field)
        queries = self.source.find_vectors(passages, {}, "document", context)
        context.usage["passage vectors"] = context.usage.pop("document vectors")
        documents = self.source.find_vectors(texts.documents, stored, "document", context)
        return context.rank_queries(
            texts, [*texts.documents], cosine_chunks(queries, documents), depth
        )
