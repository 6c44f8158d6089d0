"""Stored vectors: a NumPy archive with ids and vectors of documents and queries."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError, did_you_mean
from fusion_bench.io.outputs import write_output
from fusion_bench.retrieve.common import CHUNK
from fusion_bench.retrieve.embed import normalize_rows
from fusion_bench.util.files.regular_files import open_regular

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
