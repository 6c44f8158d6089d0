"""Where every source and every system has each relevant document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, IntArray, make_readonly
from fusion_bench.evaluation.details.plain_data import SHARED, PlainTable
from fusion_bench.evaluation.details.relevant_documents import RelevantDocuments
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns


@dataclass(frozen=True, eq=False, repr=False)
class RelevantRanks(PlainTable):
    """The M relevant documents (grade at least 1), returned or not, grouped by query.

    Attributes:
        queries: Ids of all Q queries.
        query: Shape (M,): index of the query.
        documents: Ids, (M,).
        grades: Shape (M,).
        sources: Names, (S,).
        source_ranks: Shape (S, M): 1-based rank in the source's whole list; 0 = not in it.
        systems: Names, (T,).
        system_ranks: Shape (T, M): 1-based rank in the system's final list; 0 = not in it.
    """

    queries: tuple[str, ...] = field(metadata=SHARED)
    query: IntArray
    documents: tuple[str, ...]
    grades: IntArray
    sources: tuple[str, ...]
    source_ranks: IntArray
    systems: tuple[str, ...]
    system_ranks: IntArray

    def __post_init__(self) -> None:
        for array in (self.query, self.grades, self.source_ranks, self.system_ranks):
            make_readonly(array)

    def keep_queries(self, keep: BoolArray) -> RelevantRanks:
        """The same for the queries where ``keep``, shape (Q,), is true."""
        if keep.all():
            return self
        rows = np.flatnonzero(keep[self.query])
        return replace(
            self,
            query=self.query[rows],
            documents=tuple(self.documents[m] for m in rows.tolist()),
            grades=self.grades[rows],
            source_ranks=self.source_ranks[:, rows],
            system_ranks=self.system_ranks[:, rows],
        )

    def _summary(self) -> str:
        documents = pluralize(len(self.documents), "relevant document")
        sources = pluralize(len(self.sources), "source")
        return f"RelevantRanks({documents}, {sources}, {pluralize(len(self.systems), 'system')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a relevant document; a rank of None = not returned."""
        rows = slice(limit)
        ranks = {
            **dict(zip(self.sources, self.source_ranks, strict=True)),
            **{
                f"{name} (system)" if name in self.sources else name: row
                for name, row in zip(self.systems, self.system_ranks, strict=True)
            },
        }
        return {
            "query": [self.queries[q] for q in self.query[rows].tolist()],
            "document": self.documents[rows],
            "grade": self.grades[rows].tolist(),
            **{name: [rank or None for rank in row[rows].tolist()] for name, row in ranks.items()},
        }


def make_relevant_ranks(
    runs: AlignedRuns, relevant: RelevantDocuments, system_ranks: Mapping[str, IntArray]
) -> RelevantRanks:
    """The ranks of the relevant documents in the sources, beside those in the systems.

    Args:
        runs: Aligned runs, all sources.
        relevant: The relevant documents of their queries.
        system_ranks: By system, shape (M,).
    """
    is_returned = relevant.rows >= 0
    ranks = np.zeros((len(runs.sources), len(relevant.rows)), dtype=np.int64)
    ranks[:, is_returned] = runs.ranks[:, relevant.rows[is_returned]]
    tables = list(system_ranks.values())
    return RelevantRanks(
        queries=runs.queries,
        query=relevant.query,
        documents=relevant.documents,
        grades=relevant.grades,
        sources=runs.sources,
        source_ranks=ranks,
        systems=tuple(system_ranks),
        system_ranks=np.stack(tables) if tables else ranks[:0],
    )
