"""How alike the sources are, and which relevant documents each of them alone returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.evaluation.details.plain_data import PlainTable, to_plain
from fusion_bench.evaluation.details.rank_collector import TOP
from fusion_bench.evaluation.details.relevant_ranks import RelevantRanks
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns


@dataclass(frozen=True, eq=False, repr=False)
class SourceOverlap(PlainTable):
    """What S sources have in common.

    Attributes:
        sources: Names, (S,).
        depth: k: the lists are compared up to this rank.
        shared: Shape (S, S): mean over queries of common documents in both first k ÷ length of
            the longer of the two; NaN = neither list has a document for any query.
        relevant: The number of relevant documents of all queries, returned or not.
        returned: Shape (S,): how many of them each source returns, at any rank.
        alone: Shape (S,): how many of them only this source returns.
    """

    sources: tuple[str, ...]
    depth: int
    shared: FloatArray
    relevant: int
    returned: IntArray
    alone: IntArray

    def __post_init__(self) -> None:
        for array in (self.shared, self.returned, self.alone):
            make_readonly(array)

    @property
    def alone_share(self) -> FloatArray:
        """(S,): share of the relevant documents that only this source returns; NaN = none."""
        return self.alone / self.relevant if self.relevant else np.full(len(self.alone), np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Every field, and ``alone_share``, as JSON has it."""
        return {**super().to_dict(), "alone_share": to_plain(self.alone_share)}

    def _summary(self) -> str:
        return f"SourceOverlap({pluralize(len(self.sources), 'source')}, top {self.depth})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a source."""
        rows = slice(limit)
        return {
            "source": self.sources[rows],
            "returned": self.returned[rows].tolist(),
            "alone": self.alone[rows].tolist(),
            "alone share": self.alone_share[rows].tolist(),
            **{
                f"shared with {name}": self.shared[rows, s].tolist()
                for s, name in enumerate(self.sources)
            },
        }


def measure_overlap(runs: AlignedRuns, relevant: RelevantRanks, depth: int = TOP) -> SourceOverlap:
    """What the sources have in common.

    Args:
        runs: Aligned runs.
        relevant: The ranks of their relevant documents.
        depth: How many documents of each list are compared.
    """
    is_top = (runs.ranks >= 1) & (runs.ranks <= depth)
    rows = np.flatnonzero(is_top.any(axis=0))
    is_top, query = is_top[:, rows], runs.query_index[rows]
    size, queries = len(runs.sources), len(runs.queries)
    lengths = np.stack([np.bincount(query[row], minlength=queries) for row in is_top])
    shared = np.full((size, size), np.nan)
    for a in range(size):
        for b in range(a, size):
            longer = np.maximum(lengths[a], lengths[b])
            common = np.bincount(query[is_top[a] & is_top[b]], minlength=queries)
            is_known = longer > 0
            if is_known.any():
                shared[a, b] = shared[b, a] = (common[is_known] / longer[is_known]).mean()
    is_returned = relevant.source_ranks > 0
    return SourceOverlap(
        sources=runs.sources,
        depth=depth,
        shared=shared,
        relevant=len(relevant.documents),
        returned=is_returned.sum(axis=1),
        alone=(is_returned & (is_returned.sum(axis=0) == 1)).sum(axis=1),
    )
