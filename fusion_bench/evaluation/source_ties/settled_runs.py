"""Aligned runs in which the ties of the lists are settled otherwise, many times at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import to_offsets
from fusion_bench.evaluation.source_ties.tied_rows import TiedRows, find_tied_rows

#: Of each list with ties one key, (m,), for each tied candidate: the lowest of a group is first.
Settlement: TypeAlias = tuple[FloatArray, ...]


class TiedList(NamedTuple):
    """One list with ties: a source or a rerank list.

    Attributes:
        name: Its name.
        field: The array of the aligned runs that has its ranks.
        row: Its row there.
        tied: Its tied candidates.
    """

    name: str
    field: Literal["ranks", "rerank_ranks"]
    row: int
    tied: TiedRows


@dataclass(frozen=True, eq=False)
class TiedRuns:
    """Aligned runs and which of their lists have ties.

    Attributes:
        runs: The runs.
        lists: The lists with ties.
    """

    runs: AlignedRuns
    lists: tuple[TiedList, ...]

    @property
    def queries(self) -> BoolArray:
        """(Q,): the queries that have ties in some list."""
        marked = np.zeros(len(self.runs.queries), dtype=bool)
        for each in self.lists:
            marked[self.runs.query_index[each.tied.rows]] = True
        return marked

    def draw(self, seed: int, number: int) -> Settlement:
        """A random settlement, in which no list changes another's.

        Args:
            seed: The seed.
            number: Which settlement.
        """
        streams = (
            np.random.default_rng([seed, number, crc32(f"{each.field} {each.name}".encode())])
            for each in self.lists
        )
        return tuple(
            stream.random(len(each.tied.rows))
            for stream, each in zip(streams, self.lists, strict=True)
        )

    def reverse(self) -> Settlement:
        """The settlement that turns the order of every group round."""
        return tuple(-np.arange(len(each.tied.rows), dtype=np.float64) for each in self.lists)

    def settle(self, settlements: Sequence[Settlement]) -> AlignedRuns:
        """All queries once for each settlement, one settlement after another."""
        changed: dict[str, list[IntArray]] = {"ranks": [], "rerank_ranks": []}
        for keys in settlements:
            arrays = {
                "ranks": self.runs.ranks.copy(),
                "rerank_ranks": self.runs.rerank_ranks.copy(),
            }
            for each, key in zip(self.lists, keys, strict=True):
                row = arrays[each.field][each.row]
                row[:] = each.tied.settle(row, key)
            for field, array in arrays.items():
                changed[field].append(array)
        joined: dict[str, Any] = {
            field: np.concatenate(parts, axis=1) for field, parts in changed.items()
        }
        return replace(_repeat_queries(self.runs, len(settlements)), **joined)


def find_tied_runs(
    runs: AlignedRuns, sources: Collection[str], rerankers: Collection[str]
) -> TiedRuns:
    """The runs, and which of these sources and rerank lists have ties."""
    named: tuple[tuple[Literal["ranks", "rerank_ranks"], Any, Any, FloatArray], ...] = (
        ("ranks", sources, runs.sources, runs.scores),
        ("rerank_ranks", rerankers, runs.rerankers, runs.rerank),
    )
    lists = [
        TiedList(name, field, row, find_tied_rows(runs, getattr(runs, field)[row], scores[row]))
        for field, chosen, names, scores in named
        for row, name in enumerate(names)
        if name in chosen
    ]
    return TiedRuns(runs, tuple(each for each in lists if len(each.tied.rows)))


def restrict_ties(
    tied: TiedRuns, settlements: Sequence[Settlement], keep: BoolArray
) -> tuple[TiedRuns, list[Settlement]]:
    """The runs and their settlements for some queries only.

    Args:
        tied: All queries.
        settlements: Settlements of all queries.
        keep: Shape (Q,): the queries to take.
    """
    is_kept = keep[tied.runs.query_index]
    row_after = np.cumsum(is_kept) - 1
    masks = [is_kept[each.tied.rows] for each in tied.lists]
    lists = [
        each._replace(tied=TiedRows(row_after[each.tied.rows[mask]], each.tied.group[mask]))
        for each, mask in zip(tied.lists, masks, strict=True)
    ]
    parts = [
        tuple(key[mask] for key, mask in zip(keys, masks, strict=True)) for keys in settlements
    ]
    return TiedRuns(tied.runs.subset(keep), tuple(lists)), parts


def _repeat_queries(runs: AlignedRuns, times: int) -> AlignedRuns:
    """Every query so many times: all of them, and then all of them again."""
    names = ("queries", "types", "confidences", "groups", "words", "records")
    arrays = ("documents", "grades", "judged", "scores", "rerank")
    repeated: dict[str, Any] = {name: getattr(runs, name) * times for name in names}
    for name in arrays:
        repeated[name] = np.concatenate([getattr(runs, name)] * times, axis=-1)
    return replace(
        runs,
        **repeated,
        offsets=to_offsets(np.tile(np.diff(runs.offsets), times)),
        ranks=np.tile(runs.ranks, times),
        rerank_ranks=np.tile(runs.rerank_ranks, times),
        ideal_offsets=to_offsets(np.tile(np.diff(runs.ideal_offsets), times)),
        ideal_grades=np.tile(runs.ideal_grades, times),
    )
