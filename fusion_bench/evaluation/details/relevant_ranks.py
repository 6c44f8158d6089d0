"""Where relevant documents rank: by system, by source, in which sources they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fusion_bench.checks.unjudged import UNJUDGED_DEPTH
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import find_keys, query_of_rows, unite_vocabularies
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_arrays_readonly
from fusion_bench.data.qrels import Qrels
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.ranking.collapse import collapse_pool
from fusion_bench.util.formatting import Columns, TableView, pluralize

#: Metadata of a field that another record holds too, and that is written there alone.
SHARED: Final = {"shared": True}


class PlainTable(TableView):
    """A frozen record of arrays that is shown as a table."""

    def to_dict(self) -> dict[str, Any]:
        """Every field but the ``SHARED`` ones, as JSON has it."""
        data: dict[str, Any] = _to_plain(self)
        return data


def _to_plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON has
    """A record, an array or a collection of these as lists, dictionaries and numbers.

    Args:
        value: NaN becomes None. Fields of a record that are marked ``SHARED``, or None by default
            and in this record, are left out.
    """
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if is_dataclass(value) and not isinstance(value, type):
        items = ((each, getattr(value, each.name)) for each in fields(value))
        return {
            each.name: _to_plain(item)
            for each, item in items
            if not each.metadata.get("shared") and (item is not None or each.default is not None)
        }
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _plain_array(array: np.ndarray[Any, Any]) -> list[Any]:
    if array.dtype.kind == "f" and np.isnan(array).any():
        items = array.astype(object)
        items[np.isnan(array)] = None
        return list(items.tolist())
    return list(array.tolist())


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class RelevantDocuments:
    """The M relevant documents of the evaluated queries, returned or not, grouped by query.

    Attributes:
        query: Shape (M,): index of the query.
        documents: Ids, (M,).
        grades: Shape (M,).
        rows: Shape (M,): the candidate of the aligned runs; -1 = no list returned it.
        codes: Shape (M,): the code of the document in the runs' vocabulary; -1 = it has none.
    """

    query: IntArray
    documents: tuple[str, ...]
    grades: IntArray
    rows: IntArray
    codes: IntArray


def list_relevant(runs: AlignedRuns, qrels: Qrels, binary_relevance: int) -> RelevantDocuments:
    """The relevant documents of the queries of ``runs``.

    Args:
        runs: Aligned runs.
        qrels: The judgments that they were aligned with.
        binary_relevance: The grade from which a document is relevant.
    """
    index = {query: q for q, query in enumerate(runs.queries)}
    numbers = np.array([index.get(query, -1) for query in qrels.queries], dtype=np.int64)
    query = numbers[query_of_rows(qrels.offsets)]
    kept = np.flatnonzero((qrels.grades >= binary_relevance) & (query >= 0))
    kept = kept[np.argsort(query[kept], kind="stable")]
    vocabulary, (of_runs, of_qrels) = unite_vocabularies([runs.vocabulary, qrels.vocabulary])
    size = len(vocabulary)
    documents = of_qrels[qrels.documents[kept]]
    keys = query[kept] * size + documents
    rows = np.flatnonzero(runs.judged & (runs.grades >= binary_relevance))
    at = find_keys(runs.query_index[rows] * size + of_runs[runs.documents[rows]], keys)
    return RelevantDocuments(
        query=query[kept],
        documents=qrels.vocabulary.decode(qrels.documents[kept]),
        grades=qrels.grades[kept],
        rows=np.where(at >= 0, rows[at] if len(rows) else -1, -1),
        codes=find_keys(of_runs, documents),
    )


def take_relevant(values: NDArray[T], relevant: RelevantDocuments) -> NDArray[T]:
    """(M,): the values of the relevant documents among (N,); 0 or False where no list has it."""
    taken = np.zeros(len(relevant.rows), dtype=values.dtype)
    is_known = relevant.rows >= 0
    taken[is_known] = values[relevant.rows[is_known]]
    return taken


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
        known = np.flatnonzero(self.relevant.codes >= 0)
        keys = self._pair_keys(self.relevant.query[known], self.relevant.codes[known])
        order = np.argsort(keys)
        self._keys, self._order = keys[order], known[order]

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


@dataclass(frozen=True, eq=False, repr=False)
class DocumentTable(PlainTable):
    """Rows of documents, grouped by query; the last axis of each array has one entry a row.

    Attributes:
        queries: Ids of all Q queries.
        query: Shape (M,): index of the query.
        documents: Ids, (M,).
    """

    row_names: ClassVar[tuple[str, ...]] = ("documents",)

    queries: tuple[str, ...] = field(metadata=SHARED)
    query: IntArray
    documents: tuple[str, ...]

    def __post_init__(self) -> None:
        make_arrays_readonly(self)

    def keep_queries(self, keep: BoolArray) -> Self:
        """Keep the queries where ``keep``, shape (Q,), is true."""
        return self if keep.all() else self.take(np.flatnonzero(keep[self.query]))

    def take(self, rows: IntArray) -> Self:
        """Take some rows, in their order."""
        taken: dict[str, Any] = {}
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                taken[name] = values[..., rows]
            elif name in self.row_names and values is not None:
                taken[name] = tuple(values[row] for row in rows.tolist())
        return replace(self, **taken)


@dataclass(frozen=True, eq=False, repr=False)
class RelevantRanks(DocumentTable):
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

    grades: IntArray
    sources: tuple[str, ...]
    source_ranks: IntArray
    systems: tuple[str, ...]
    system_ranks: IntArray

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
        make_arrays_readonly(self)

    @property
    def alone_share(self) -> FloatArray:
        """(S,): share of the relevant documents that only this source returns; NaN = none."""
        return self.alone / self.relevant if self.relevant else np.full(len(self.alone), np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Every field, and ``alone_share``, as JSON has it."""
        return {**super().to_dict(), "alone_share": _to_plain(self.alone_share)}

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


@dataclass(frozen=True, eq=False)
class CollectedLists:
    """One collection: what its details are computed from.

    The dataset itself is not kept: the aligned runs have all of its lists.

    Attributes:
        name: The dataset.
        runs: Aligned, the Q evaluated queries.
        pool: The candidates that systems return some of: documents, where chunks are collapsed.
        measures: The primary measure first.
        alpha: 1 − coverage of intervals.
        documents: Texts of the documents; None = the dataset has none.
        wanted: Names of systems to detail beside the best one, the baseline first.
        ranks: What was collected of the lists of each system.
        systems: By name, fitted.
    """

    name: str
    runs: AlignedRuns
    pool: AlignedRuns
    measures: tuple[Measure, ...]
    alpha: float
    documents: Path | None
    wanted: tuple[str, ...]
    ranks: RankCollector
    systems: dict[str, System] = field(default_factory=dict)

    @classmethod
    def of_task(cls, task: EvaluationSet, names: tuple[str, ...]) -> CollectedLists:
        """A collection whose systems are still to be observed.

        Args:
            task: The collection.
            names: Systems to detail.
        """
        dataset, runs = task.dataset, task.runs.repeats[0]
        pool = collapse_pool(runs, task.experiment.systems.values())
        relevant = list_relevant(pool, dataset.qrels, 1)
        return cls(
            name=dataset.spec.name,
            runs=runs,
            pool=pool,
            measures=tuple(task.measures),
            alpha=task.experiment.alpha,
            documents=dataset.documents,
            wanted=(task.experiment.baseline, *_guarded(task.experiment), *names),
            ranks=RankCollector(runs, relevant),
        )

    def observe(self, system: System) -> Observer:
        """What to call with the lists of a fitted system."""
        self.systems[system.name] = system
        return self.ranks.observe(system.name)

    def without_views(self) -> CollectedLists:
        """Drop what was derived from the runs while systems were measured."""
        return replace(self, runs=replace(self.runs), pool=replace(self.pool))


def _guarded(experiment: Experiment) -> Iterator[str]:
    """The systems that the gate guards and that tuning starts from."""
    if experiment.gate is not None and experiment.gated_system is not None:
        yield experiment.gated_system.name
    if experiment.tune is not None and experiment.tune.system is not None:
        yield experiment.tune.system
