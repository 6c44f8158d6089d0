"""The collections of :mod:`benchmarks.cases` made as aligned arrays, without a string a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Size
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import encode_ids, to_offsets
from fusion_bench.io.load_records import ALIGNED_FIELDS

#: Queries that are made at a time: bounds the memory that takes.
BLOCK = 2_000
#: Scores are whole numbers of steps above the least possible one; the last bits are the document.
STEPS, SHIFT, BITS = 1 << 20, 32, 16
MASK = (1 << BITS) - 1


def make_aligned_runs(size: Size, seed: int = 0) -> AlignedRuns:
    """Runs that agree in part: each ranks a noisy copy of one hidden score a document."""
    rng = np.random.default_rng(seed)
    starts = range(0, size.queries, BLOCK)
    blocks = [_make_block(size, min(BLOCK, size.queries - start), rng) for start in starts]
    ranks, documents, scores, grades, counts, ideal, relevant = (
        np.concatenate(column, axis=-1) for column in zip(*blocks, strict=True)
    )
    arrays = {
        "offsets": to_offsets(counts),
        "documents": documents,
        "ranks": ranks,
        "scores": scores,
        "grades": grades,
        "judged": grades > 0,
        "rerank": np.empty((0, len(documents))),
        "rerank_ranks": np.empty((0, len(documents)), dtype=np.int64),
        "ideal_offsets": to_offsets(relevant),
        "ideal_grades": ideal,
    }
    return _name_arrays(size, arrays)


def save_arrays(runs: AlignedRuns, folder: Path) -> None:
    """Write the arrays to a new folder."""
    folder.mkdir()
    for name in ALIGNED_FIELDS:
        np.save(folder / f"{name}.npy", getattr(runs, name))


def map_arrays(size: Size, folder: Path) -> AlignedRuns:
    """What :func:`save_arrays` wrote, mapped into memory."""
    arrays = {}
    for name in ALIGNED_FIELDS:
        file = folder / f"{name}.npy"
        is_large = file.stat().st_size > 4096  # an empty array cannot be mapped
        arrays[name] = np.asarray(np.load(file, mmap_mode="r" if is_large else None))
    return _name_arrays(size, arrays)


def _name_arrays(size: Size, arrays: dict[str, Any]) -> AlignedRuns:
    queries = tuple(f"q{q:07}" for q in range(size.queries))  # in the order of their ids
    names = tuple(f"run{s}" for s in range(size.runs))
    return AlignedRuns(
        sources=names,
        roles=(frozenset[str](),) * size.runs,
        queries=queries,
        types=(None,) * size.queries,
        confidences=(None,) * size.queries,
        groups=queries,
        vocabulary=encode_ids([f"d{d:05}" for d in range(size.pool)]).vocabulary,
        rerankers=(),
        **arrays,
    )


def _make_block(size: Size, queries: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Some queries: ranks, documents, scores, grades, candidates, ideal grades, relevant ones."""
    shape = (queries, size.pool)
    hidden = rng.standard_normal(shape, dtype=np.float32)
    ranks = np.zeros((size.runs, *shape), dtype=np.int64)
    scores = np.full((size.runs, *shape), np.nan)
    for s in range(size.runs):
        best = np.sort(_add_noise(hidden, rng), axis=1)[:, : -size.depth - 1 : -1]
        code = best & MASK
        np.put_along_axis(ranks[s], code, np.arange(1, size.depth + 1)[None], axis=1)
        np.put_along_axis(scores[s], code, (best >> BITS) / STEPS - SHIFT, axis=1)
    relevant = np.maximum(1, rng.poisson(size.relevant - 1, queries) + 1)
    noisy = _add_noise(hidden, rng)
    least = np.take_along_axis(np.sort(noisy, axis=1), size.pool - relevant[:, None], axis=1)
    grades = np.where(noisy >= least, rng.integers(1, 4, shape), 0)
    # The greatest id comes first: the tie rule's order.
    listed = np.any(ranks > 0, axis=0)[:, ::-1]
    documents = np.broadcast_to(np.arange(size.pool)[::-1], shape)[listed]
    query, grade = np.nonzero(grades)[0], grades[grades > 0]
    return (
        ranks[:, :, ::-1][:, listed],
        documents,
        scores[:, :, ::-1][:, listed],
        grades[:, ::-1][listed],
        listed.sum(axis=1),
        grade[np.lexsort((-grade, query))],
        np.bincount(query, minlength=queries),
    )


def _add_noise(hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A noisy copy as integers that end in the document, so that a plain sort is enough."""
    noisy = hidden + rng.standard_normal(hidden.shape, dtype=np.float32)
    steps = ((noisy + SHIFT) * STEPS).astype(np.int64)
    return steps << BITS | np.arange(hidden.shape[1])
