"""The first documents of each system with their scores, terms, texts; limits of their number."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.details.relevant_ranks import DocumentTable, TopRows
from fusion_bench.experiment.system import System
from fusion_bench.io.json_objects import read_excerpts, shorten
from fusion_bench.measures import Measure
from fusion_bench.methods.blend import Fused, RerankBlend
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import ScoreTerms
from fusion_bench.ranking.collapse import StandingChunk, standing_chunks
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_ranking import fused_list
from fusion_bench.ranking.system_scores import query_blocks
from fusion_bench.util.formatting import Columns, is_encodable, pluralize

#: Name of the term that a blend takes from the fused list.
RETRIEVAL = "retrieval"


class Contributions(NamedTuple):
    """The summands of n final scores.

    Attributes:
        labels: Names of the T summands.
        values: Shape (T, n); NaN = the score has no such summand.
        scores: Shape (n,): the final scores. They are the sums of their summands, up to rounding;
            less where a method limits its scores.
    """

    labels: tuple[str, ...]
    values: FloatArray
    scores: FloatArray


def list_contributions(system: System, view: AlignedRuns, rows: IntArray) -> Contributions:
    """The summands of the final scores of some candidates.

    Args:
        system: A plain system.
        view: The sources that take part in it.
        rows: Shape (n,): candidates of the view.
    """
    parts = system.fusion.score_terms(view)
    parts = replace(parts, terms=parts.terms[:, rows], divisor=parts.divisor[rows])
    labels, values = _fused_contributions(parts, view.sources)
    if isinstance(system.blend, NoBlend):
        return Contributions(labels, values, system.fusion.display_scores(parts.scores))
    fused = fused_list(view, system.fusion)
    scores = system.blend.blend(view, fused, view.spaces).scores[rows]
    if not isinstance(system.blend, RerankBlend):
        return Contributions(labels, values, scores)
    names, mixed = _blend_contributions(system.blend, view, fused, rows, scores)
    values[:, ~np.isnan(mixed).all(axis=0)] = np.nan
    return Contributions((*labels, *names), np.vstack([values, mixed]), scores)


def _fused_contributions(
    parts: ScoreTerms, sources: tuple[str, ...]
) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the summands of the fused score, and their values, (T, n)."""
    names = parts.names(sources)
    labels = tuple(dict.fromkeys(names))
    values = np.zeros((len(labels), parts.terms.shape[1]))
    for name, term in zip(names, parts.terms, strict=True):
        values[labels.index(name)] += term / parts.divisor
    return labels, values


def _blend_contributions(
    blend: RerankBlend, view: AlignedRuns, fused: Fused, rows: IntArray, scores: FloatArray
) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the summands of a blend, and their values; NaN where nothing was blended."""
    candidates, unit, unscored = blend.score_candidates(view, fused, view.spaces)
    is_blended = (candidates & ~unscored)[rows]
    mix = blend.blend_terms(view, fused, candidates)
    label = f"rerank {blend.reranker}"
    if mix is None:
        return (label,), np.where(is_blended, scores, np.nan)[None]
    terms = (mix.retrieval_weight[rows] * mix.retrieval[rows], mix.rerank_weight[rows] * unit[rows])
    return (RETRIEVAL, label), np.where(is_blended, np.stack(terms), np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class ShownDocuments(DocumentTable):
    """The first documents of one system's lists: L rows by query, best first.

    Attributes:
        system: Its name.
        labels: Names of the T summands of a score, as ``explain`` names them.
        queries: Ids of all Q queries.
        query: Shape (L,): index of the query.
        ranks: Shape (L,): 1-based.
        documents: Ids, (L,).
        judged: Shape (L,).
        grades: Shape (L,); 0 where unjudged.
        scores: Shape (L,): final scores.
        terms: Shape (T, L): summands of the scores; NaN = the score has no such summand.
        chunks: The chunks behind them, (L,); None = the system collapses none.
    """

    row_names = ("documents", "chunks")

    system: str
    labels: tuple[str, ...]
    ranks: IntArray
    judged: BoolArray
    grades: IntArray
    scores: FloatArray
    terms: FloatArray
    chunks: tuple[StandingChunk, ...] | None = None

    def _summary(self) -> str:
        rows = pluralize(len(self.documents), "document")
        return f"ShownDocuments({self.system!r}, {rows}, terms: {', '.join(self.labels)})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a document; a grade of None = unjudged."""
        rows = slice(limit)
        graded = zip(self.grades[rows].tolist(), self.judged[rows].tolist(), strict=True)
        return {
            "system": [self.system] * len(self.documents[rows]),
            "query": [self.queries[q] for q in self.query[rows].tolist()],
            "rank": self.ranks[rows].tolist(),
            "document": self.documents[rows],
            "grade": [grade if is_judged else None for grade, is_judged in graded],
            "score": self.scores[rows].tolist(),
            **{
                f"term {label}": values[rows].tolist()
                for label, values in zip(self.labels, self.terms, strict=True)
            },
            **({"chunk": [each.chunk for each in self.chunks[rows]]} if self.chunks else {}),
        }


def list_top_documents(
    system: System, runs: AlignedRuns, tops: Sequence[TopRows], measures: Sequence[Measure] = ()
) -> ShownDocuments:
    """The first documents of a system whose lists were collected.

    Args:
        system: Fitted, with its name.
        runs: Aligned runs.
        tops: The first rows of its lists, in the order of its plain systems in each block.
        measures: What was measured when they were collected, on the same blocks.
    """
    pieces = []
    blocks = (plain_systems(system, part) for _, part in query_blocks(runs, measures))
    for (_, plain, part), top in zip(chain.from_iterable(blocks), tops, strict=True):
        view = plain.active_runs(part)
        pieces.append((view, top, list_contributions(plain, view, top.rows)))
    labels, terms = _join_terms([parts for _, _, parts in pieces])
    query = np.concatenate([top.queries[view.query_index[top.rows]] for view, top, _ in pieces])
    codes = np.concatenate([view.documents[top.rows] for view, top, _ in pieces])
    whole = ShownDocuments(
        system=system.name,
        labels=labels,
        queries=runs.queries,
        query=query,
        ranks=np.concatenate([top.ranks for _, top, _ in pieces]),
        documents=runs.vocabulary.decode(codes),
        judged=np.concatenate([view.judged[top.rows] for view, top, _ in pieces]),
        grades=np.concatenate([view.grades[top.rows] for view, top, _ in pieces]),
        scores=np.concatenate([parts.scores for _, _, parts in pieces]),
        terms=terms,
        chunks=None
        if system.collapse is None or system.collapse.by == "id"
        else tuple(each for view, top, _ in pieces for each in standing_chunks(view, top.rows)),
    )
    return whole if len(pieces) == 1 else whole.take(np.argsort(query, kind="stable"))


def _join_terms(parts: Sequence[Contributions]) -> tuple[tuple[str, ...], FloatArray]:
    """The labels of all parts that some score has, and (T, L) terms."""
    labels = dict.fromkeys(label for part in parts for label in part.labels)
    size = sum(len(part.scores) for part in parts)
    terms = {label: np.full(size, np.nan) for label in labels}
    start = 0
    for part in parts:
        stop = start + len(part.scores)
        for label, values in zip(part.labels, part.values, strict=True):
            terms[label][start:stop] = values
        start = stop
    used = [label for label in labels if not np.isnan(terms[label]).all()]
    table = [terms[label] for label in used]
    return tuple(used), np.stack(table) if table else np.zeros((0, size))


#: Characters of a query's or a document's text.
TEXT_LENGTH: Final = 300
#: Characters of the texts of all documents of a collection.
MAX_TEXT: Final = 10_000_000


def query_texts(runs: AlignedRuns) -> tuple[str | None, ...]:
    """(Q,): the text of each query, at most 300 characters of it; None = not known."""
    if not runs.records:
        return (None,) * len(runs.queries)
    return tuple(_shorten(record.text) for record in runs.records)


def document_texts(path: Path | None, documents: Collection[str]) -> dict[str, str]:
    """By id, the title and the beginning of the text of documents; without those not found.

    Args:
        path: The documents of the dataset; None = it has none.
        documents: Ids.
    """
    return read_excerpts(path, documents, length=TEXT_LENGTH, limit=MAX_TEXT)


def _shorten(text: str | None) -> str | None:
    return None if text is None or not is_encodable(text) else shorten(text, TEXT_LENGTH)
