"""Systems whose lists of chunks are collapsed to documents, as systems of plain lists.

A system that collapses its fused or its reranked list is one whose only source is that list, as a
stage. So every place is a collapse of lists before a fusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, ChunkLists, Ties, cached_by_view
from fusion_bench.data.chunk_parents import add_parents, keep_best_chunks, merge_chunks
from fusion_bench.data.ordering import IntArray
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.collapse import Collapse, ParentRule
from fusion_bench.experiment.system import System, collapse_alike
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.ranking.system_ranking import name_system_in_errors

#: Collapsed lists that a view remembers.
COLLAPSED_KEPT = 8


def add_system_parents(runs: AlignedRuns, systems: Iterable[System]) -> AlignedRuns:
    """Give the ids of the runs the parents that systems ask for.

    Raises:
        ConfigError: There are no such parents; names the system.
        DataError: A file that should have them breaks a rule.
    """
    for system in systems:
        for _, part in system.list_parts():
            if part.collapse is None or part.collapse.by == "id":
                continue
            if part.collapse.rule not in runs.parents:
                with name_system_in_errors(part):
                    runs = _add_parents(runs, part.collapse)
    return runs


@cached_by_view(key=lambda collapse: collapse.rule)
def _add_parents(runs: AlignedRuns, collapse: Collapse) -> AlignedRuns:
    if isinstance(collapse.by, ParentRule) and collapse.by.split is not None:
        return add_parents(runs, collapse.rule, collapse.by.split_id)
    if runs.find_parents is None:
        raise ConfigError(
            f"collapse: by {collapse.rule} needs a dataset whose documents or lists name parents: "
            "write by: {split: '#'} if ids hold them"
        )
    return add_parents(runs, collapse.rule, runs.find_parents(*collapse.names).get)


def unfold_collapse(system: System) -> System:
    """The system with the fused or reranked list that it collapses as a stage, else itself."""
    collapse = system.collapse
    if collapse is None or collapse.place == "each list":
        return system
    from fusion_bench.methods.fuse.weighted_score import CollapsedList  # late: few collapse

    name = f"{collapse.place} list"
    uncut: dict[str, Any] = {"name": name, "collapse": None, "abstain": None, "top_k": None}
    outer: dict[str, Any] = {
        "runs": (name,),
        "dialect": None,
        "fusion": CollapsedList(),
        "depth": None,
        "weights_by_type": None,
        "collapse": collapse.model_copy(update={"place": "each list"}),
    }
    if collapse.place == "reranked":
        outer |= dict.fromkeys(("by_query_type", "by_intent", "types", "min_relevance"))
        outer["blend"] = NoBlend()
    else:
        uncut |= {"blend": NoBlend(), "min_relevance": None}
        if system.class_key is not None and system.class_configs is not None:
            configs = system.class_configs.items()
            fused = {key: each.model_copy(update={"blend": NoBlend()}) for key, each in configs}
            blended = {
                key: each.model_copy(update={"fusion": CollapsedList()}) for key, each in configs
            }
            uncut[system.class_key.key], outer[system.class_key.key] = fused, blended
        elif system.weights_by_type is not None:
            outer["types"] = None
    stage = system.model_copy(update=uncut)
    return system.model_copy(update={**outer, "stages": {name: stage}})


def collapse_sources(system: System, runs: AlignedRuns) -> tuple[System, AlignedRuns]:
    """A plain system without its collapse, and the collapsed lists of its sources.

    Args:
        system: A plain system that collapses each list, or nothing.
        runs: Its sources, stages among them.

    Raises:
        AlignmentError: A chunk without a parent, or a negative score that would be summed up.
        ConfigError: The sources do not fit the fusion.
    """
    if system.collapse is None:
        return system, runs
    plain = system.model_copy(update={"collapse": None})
    if system.collapse.by == "id":
        return plain, runs  # rows of one id were merged when the lists were read
    roles = [runs.roles[row] for row in runs.rows(system.runs)]
    is_active = system.fusion.source_weights(system.runs, roles) > 0
    # Sources of weight 0 go last, so that they decide neither a tie nor which chunk is best.
    names = np.array(system.runs, dtype=object)
    sources = (*names[is_active], *names[~is_active])
    ties = system.fusion.ties or runs.ties
    view = _collapse_lists(runs, sources, int(is_active.sum()), system.collapse, ties)
    return plain, view


def collapse_pool(runs: AlignedRuns, systems: Iterable[System]) -> AlignedRuns:
    """The candidates of all sources: documents where a system returns these, else the runs."""
    pool = collapse_alike(System("pool", runs.sources), systems)
    is_merged = pool.collapse is not None and pool.collapse.score is not None
    return collapse_sources(pool, runs)[1] if is_merged else runs


@cached_by_view(
    keep=COLLAPSED_KEPT,
    key=lambda *given: (*given[:2], given[2].model_dump_json(), given[3]),
)
def _collapse_lists(
    runs: AlignedRuns,
    sources: tuple[str, ...],
    active: int,
    collapse: Collapse,
    ties: Ties,
) -> AlignedRuns:
    view = runs.restrict(sources, ties=ties)
    lists = ChunkLists(view, _require_parents(view, collapse), active)
    if collapse.keep is not None:
        return keep_best_chunks(lists, collapse.keep)
    if collapse.score is None:
        raise TypeError("a collapse has keep or score")
    return merge_chunks(lists, collapse.score, collapse.k)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of a document, in the lists that were collapsed.

    Attributes:
        id: Its id.
        ranks: List → its rank there, of the lists that returned it.
        scores: List → its score there.
    """

    id: str
    ranks: Mapping[str, int]
    scores: Mapping[str, float]


def list_chunks(view: AlignedRuns, query: str) -> dict[str, tuple[Chunk, ...]]:
    """Map each document of a query to its chunks, the one that stands for it first.

    Args:
        view: Collapsed lists, as :func:`~fusion_bench.ranking.plain_systems.plain_systems` has
            them; where chunks are kept, each chunk is mapped to all chunks of its document.
        query: Id of the query.

    Returns:
        An empty dictionary where nothing is collapsed.
    """
    if view.origin is None:
        return {}
    runs, parents, _ = view.origin
    q = runs.queries.index(query)
    rows = slice(int(runs.offsets[q]), int(runs.offsets[q + 1]))
    groups: dict[int, list[Chunk]] = {}
    for row in (view.origin.order_chunks(rows) + rows.start).tolist():
        returned = {
            name: (int(rank), float(score))
            for name, rank, score in zip(
                runs.sources, runs.ranks[:, row], runs.scores[:, row], strict=True
            )
            if rank > 0
        }
        chunk = Chunk(
            runs.vocabulary[int(runs.documents[row])],
            {name: rank for name, (rank, _) in returned.items()},
            {name: score for name, (_, score) in returned.items()},
        )
        groups.setdefault(int(parents[row]), []).append(chunk)
    if view.chunks is not None:
        return {runs.vocabulary[code]: tuple(chunks) for code, chunks in groups.items()}
    return {chunk.id: tuple(chunks) for chunks in groups.values() for chunk in chunks}


class StandingChunk(NamedTuple):
    """The chunk behind a result of a system that collapses chunks.

    Attributes:
        chunk: The id of the chunk that stands for its document, or that is kept.
        document: The id of its document.
        total: How many chunks of the document the collapsed lists return.
    """

    chunk: str
    document: str
    total: int


def standing_chunks(view: AlignedRuns, rows: IntArray) -> Iterator[StandingChunk]:
    """The chunks behind some candidates of collapsed lists.

    Args:
        view: Collapsed lists.
        rows: Shape (n,): candidates of the view.
    """
    if view.origin is None:
        raise TypeError("nothing is collapsed")
    runs, parents, active = view.origin
    size, documents, chunks = len(runs.vocabulary), view.documents[rows], view.chunks
    if chunks is None:  # candidates are chunks
        parent_of, chunks = np.arange(size), view.documents
        parent_of[runs.documents] = parents
        documents = parent_of[documents]
    is_returned = (runs.ranks[:active] > 0).any(axis=0)
    keys, counts = np.unique((runs.query_index * size + parents)[is_returned], return_counts=True)
    counts = counts[np.searchsorted(keys, view.query_index[rows] * size + documents)]
    names = (view.vocabulary.decode(codes) for codes in (chunks[rows], documents))
    return map(StandingChunk, *names, counts.tolist())


def _require_parents(runs: AlignedRuns, collapse: Collapse) -> IntArray:
    """(N,): code of the parent of each candidate.

    Raises:
        AlignmentError: One has none, and is not its own.
    """
    parents = runs.parents[collapse.rule][runs.documents]
    missing = np.flatnonzero(parents < 0)
    if len(missing) and collapse.orphans == "error":
        first = int(missing[0])
        raise AlignmentError(
            f"collapse: chunk {runs.vocabulary[int(runs.documents[first])]!r} of query "
            f"{runs.queries[int(runs.query_index[first])]!r} has no parent by {collapse.rule} "
            f"({len(missing):,} of {len(parents):,} candidates): correct 'by', or write "
            "'orphans: own' if such a chunk is a document itself"
        )
    return np.where(parents < 0, runs.documents, parents)
