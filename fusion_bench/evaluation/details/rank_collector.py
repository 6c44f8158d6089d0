"""What is kept of each system's final lists while they are measured; nothing is ranked twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.evaluation.details.relevant_documents import RelevantDocuments
from fusion_bench.evaluation.unjudged.unjudged_values import UNJUDGED_DEPTH

#: Documents that are listed for each query and detailed system.
TOP: Final = UNJUDGED_DEPTH


class TopRows(NamedTuple):
    """The first documents of some queries' lists, L rows by query, best first.

    Attributes:
        queries: Shape (q,): their indices.
        rows: Shape (L,): candidates of the view that was ranked.
        ranks: Shape (L,): 1-based.
    """

    queries: IntArray
    rows: IntArray
    ranks: IntArray


#: Called with indices of queries, the view of their candidates, and each candidate's 1-based
#: place in the returned list, 0 = not returned.
Observer = Callable[[IntArray, AlignedRuns, IntArray], None]


@dataclass(eq=False)
class RankCollector:
    """Ranks of the relevant documents and the tops of the lists, system by system.

    The runs themselves are not held: they are large.

    Attributes:
        relevant: The M relevant documents of all Q queries.
        ranks: By system, shape (M,): 1-based final rank; 0 = not returned.
        unjudged: By system, shape (Q,): unjudged documents among the first ones.
        tops: By system, in the order of its plain systems.
    """

    runs: InitVar[AlignedRuns]
    relevant: RelevantDocuments
    ranks: dict[str, IntArray] = field(default_factory=dict, init=False)
    unjudged: dict[str, IntArray] = field(default_factory=dict, init=False)
    tops: dict[str, list[TopRows]] = field(default_factory=dict, init=False)
    _queries: int = field(init=False, repr=False)
    _codes: int = field(init=False, repr=False)
    _keys: IntArray = field(init=False, repr=False)
    _order: IntArray = field(init=False, repr=False)

    def __post_init__(self, runs: AlignedRuns) -> None:
        self._queries, self._codes = len(runs.queries), len(runs.vocabulary)
        returned = np.flatnonzero(self.relevant.rows >= 0)
        codes = runs.documents[self.relevant.rows[returned]]
        keys = self._pair_keys(self.relevant.query[returned], codes)
        order = np.argsort(keys)
        self._keys, self._order = keys[order], returned[order]

    def _pair_keys(self, query: IntArray, documents: IntArray) -> IntArray:
        return query * self._codes + documents

    def observe(self, system: str) -> Observer:
        """What to call with the lists of a system, part by part."""
        self.ranks[system] = np.zeros(len(self.relevant.rows), dtype=np.int64)
        self.unjudged[system] = np.zeros(self._queries, dtype=np.int64)
        self.tops[system] = []
        return partial(self._add_part, system)

    def _add_part(
        self, system: str, index: IntArray, view: AlignedRuns, positions: IntArray
    ) -> None:
        relevant = np.flatnonzero(view.grades > 0)
        keys = self._pair_keys(index[view.query_index[relevant]], view.documents[relevant])
        at = self._order[np.searchsorted(self._keys, keys)]
        self.ranks[system][at] = positions[relevant]
        rows = np.flatnonzero((positions >= 1) & (positions <= TOP))
        rows = rows[np.argsort(view.query_index[rows] * (TOP + 1) + positions[rows])]
        self.tops[system].append(TopRows(index, rows, positions[rows]))
        unknown = view.query_index[rows[~view.judged[rows]]]
        self.unjudged[system][index] = np.bincount(unknown, minlength=len(index))
