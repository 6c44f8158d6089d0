"""The first ten documents of each query under one system, each with the summands of its score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.details.plain_data import SHARED, PlainTable
from fusion_bench.evaluation.details.rank_collector import TopRows
from fusion_bench.evaluation.details.score_contributions import Contributions, list_contributions
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.experiment.system import System
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns


@dataclass(frozen=True, eq=False, repr=False)
class TopDocuments(PlainTable):
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
    """

    system: str
    labels: tuple[str, ...]
    queries: tuple[str, ...] = field(metadata=SHARED)
    query: IntArray
    ranks: IntArray
    documents: tuple[str, ...]
    judged: BoolArray
    grades: IntArray
    scores: FloatArray
    terms: FloatArray

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                make_readonly(value)

    def keep_queries(self, keep: BoolArray) -> TopDocuments:
        """The same for the queries where ``keep``, shape (Q,), is true."""
        return self if keep.all() else self._take(np.flatnonzero(keep[self.query]))

    def _take(self, rows: IntArray) -> TopDocuments:
        arrays = {name: getattr(self, name)[rows] for name in ("query", "ranks", "judged")}
        return replace(
            self,
            **arrays,
            documents=tuple(self.documents[row] for row in rows.tolist()),
            grades=self.grades[rows],
            scores=self.scores[rows],
            terms=self.terms[:, rows],
        )

    def _summary(self) -> str:
        rows = pluralize(len(self.documents), "document")
        return f"TopDocuments({self.system!r}, {rows}, terms: {', '.join(self.labels)})"

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
        }


def list_top_documents(
    system: System,
    runs: AlignedRuns,
    tops: Sequence[TopRows],
    spaces: Mapping[str, ScoreSpace],
) -> TopDocuments:
    """The first documents of a system whose lists were collected.

    Args:
        system: Fitted, with its name.
        runs: Aligned runs.
        tops: The first rows of its lists, in the order of its plain systems.
        spaces: Score space of each rerank list.
    """
    pieces = []
    for (_, plain, part), top in zip(plain_systems(system, runs, spaces), tops, strict=True):
        view = plain.active_runs(part)
        pieces.append((view, top, list_contributions(plain, view, top.rows, spaces)))
    labels, terms = _join_terms([parts for _, _, parts in pieces])
    query = np.concatenate([top.queries[view.query_index[top.rows]] for view, top, _ in pieces])
    codes = np.concatenate([view.documents[top.rows] for view, top, _ in pieces])
    whole = TopDocuments(
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
    )
    return whole if len(pieces) == 1 else whole._take(np.argsort(query, kind="stable"))


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
