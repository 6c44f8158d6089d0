"""What the learning-to-rank model sees of a query and a document.

Nothing here counts uses, and no feature is a length: descriptions are cut at 300 characters, and
which of them are shorter, like how many analytics or platforms a technique has, goes with how
well known it is. BM25's own length normalization is as near as it gets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from entity_walk import EntityLinker
from numpy.typing import NDArray
from texts import Technique

from fusion_bench.data.ordering import FloatArray
from fusion_bench.models.retrievers.lexical import BM25Index


@dataclass(frozen=True)
class Scores:
    """The three runs' scores of all documents, each of shape (Q, D)."""

    bm25: FloatArray
    dense: FloatArray
    graph: FloatArray


def tables(
    queries: Sequence[str],
    techniques: dict[str, Technique],
    scores: Scores,
    name_cosines: FloatArray,
) -> dict[str, FloatArray]:
    """Every feature by name, as a matrix of shape (Q, D).

    Args:
        queries: Texts, shape (Q,).
        techniques: The documents, D of them.
        scores: Rounded as they are in the runs, so that the model depends on published numbers.
        name_cosines: Shape (Q, D): cosine of the query with the technique's name alone.
    """
    names = {t.id: t.name for t in techniques.values()}
    made: dict[str, FloatArray] = {}
    for source in ("bm25", "dense", "graph"):
        table = getattr(scores, source)
        made[source] = table
        made[f"{source} share of best"] = _share_of_best(table)
        made[f"{source} log rank"] = np.log(_ranks(table))
        made[f"{source} of parent"] = _through(table, _parents(techniques))
        made[f"{source} lead over family"] = table - _best_relative(table, techniques)
    made["name bm25"] = BM25Index(names).scores(queries)
    made["name dense"] = name_cosines
    made["name coverage"] = EntityLinker(names).coverage(queries)
    made["parent name coverage"] = _through(made["name coverage"], _parents(techniques))
    made["tactic named"] = _best_named(queries, techniques, lambda t: t.tactics)
    made["platform named"] = _best_named(queries, techniques, lambda t: t.platforms)
    child = np.array([float(t.id != t.family) for t in techniques.values()])
    made["is subtechnique"] = np.broadcast_to(child, (len(queries), len(child)))
    return made


def _share_of_best(table: FloatArray) -> FloatArray:
    best = table.max(axis=1, keepdims=True)
    return np.asarray(table / np.where(best > 0, best, 1.0), dtype=np.float64)


def _ranks(table: FloatArray) -> FloatArray:
    """1 + documents that score higher, per query; shape (Q, D)."""
    ordered = np.sort(table, axis=1)
    return np.array(
        [
            1 + len(row) - np.searchsorted(below, row, side="right")
            for row, below in zip(table, ordered, strict=True)
        ],
        dtype=np.float64,
    )


def _parents(techniques: dict[str, Technique]) -> NDArray[np.int64]:
    """Column of each document's parent, or its own."""
    column = {name: i for i, name in enumerate(techniques)}
    return np.array([column[t.family] for t in techniques.values()], dtype=np.int64)


def _through(table: FloatArray, columns: NDArray[np.int64]) -> FloatArray:
    return np.asarray(table[:, columns], dtype=np.float64)


def _best_relative(table: FloatArray, techniques: dict[str, Technique]) -> FloatArray:
    """The highest score among the other members of a document's family; 0 when it has none."""
    families: dict[str, list[int]] = {}
    for column, technique in enumerate(techniques.values()):
        families.setdefault(technique.family, []).append(column)
    best = np.zeros_like(table)
    for members in families.values():
        for column in members:
            others = [m for m in members if m != column]
            if others:
                best[:, column] = table[:, others].max(axis=1)
    return best


def _best_named(
    queries: Sequence[str],
    techniques: dict[str, Technique],
    labels: Callable[[Technique], tuple[str, ...]],
) -> FloatArray:
    """How fully the query names one of the document's labels: the best coverage among them."""
    known = sorted({label for t in techniques.values() for label in labels(t)})
    coverage = EntityLinker({label: label.replace("-", " ") for label in known}).coverage(queries)
    column = {label: i for i, label in enumerate(known)}
    made = np.zeros((len(queries), len(techniques)))
    for place, technique in enumerate(techniques.values()):
        own = [column[label] for label in labels(technique)]
        if own:
            made[:, place] = coverage[:, own].max(axis=1)
    return made
