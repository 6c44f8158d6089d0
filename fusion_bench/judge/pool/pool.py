"""The pool: every document that some system returns within a depth."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from fusion_bench.evaluation.completions.top_documents import TopDocuments, collect_top
from fusion_bench.evaluation.ranking.list_positions import list_parts
from fusion_bench.judge.pool.judged_systems import JudgedSystems, align_for_judging

#: A query and a document.
Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class PooledDocument:
    """A document that some system returns within the depth.

    Attributes:
        query: Id of the query.
        document: Its id.
        ranks: (S,): its rank in the list of each system, 1-based; 0 = beyond the depth. Of several
            trials of a system the highest.
    """

    query: str
    document: str
    ranks: tuple[int, ...]

    @property
    def pair(self) -> Pair:
        """Query and document."""
        return self.query, self.document

    @property
    def best_rank(self) -> int:
        """Its highest rank in any list."""
        return min(rank for rank in self.ranks if rank)

    @property
    def systems(self) -> int:
        """How many systems return it."""
        return sum(rank > 0 for rank in self.ranks)


@dataclass(frozen=True)
class Pool:
    """A pool.

    Attributes:
        systems: Names of the S systems.
        depth: The greatest rank that counts.
        documents: By query in the order of the lists, and inside it by document id.
    """

    systems: tuple[str, ...]
    depth: int
    documents: tuple[PooledDocument, ...]

    def without(self, pairs: Collection[Pair]) -> Pool:
        """The same pool without these documents."""
        kept = tuple(each for each in self.documents if each.pair not in pairs)
        return Pool(self.systems, self.depth, kept)

    def by_query(self) -> dict[str, list[PooledDocument]]:
        """The documents of each query."""
        groups: dict[str, list[PooledDocument]] = {}
        for each in self.documents:
            groups.setdefault(each.query, []).append(each)
        return groups


def build_pool(judged: JudgedSystems, depth: int) -> Pool:
    """Pool the first ``depth`` documents of every system and query.

    Source: Spärck Jones and van Rijsbergen, British Library report 5266, 1975, as TREC pools.
    """
    ranks: dict[Pair, list[int]] = {}
    queries: dict[str, None] = {}
    for number, dataset in enumerate(judged.dataset.trials, 1):
        runs, systems = align_for_judging(judged, dataset)
        queries |= dict.fromkeys(runs.queries)
        for s, system in enumerate(systems.values()):
            if number > judged.dataset.count_trials(system.list_keys):
                continue
            parts = list_parts(system, runs, dataset.spaces)
            top = collect_top(runs, parts, cutoff=depth)
            for pair, rank in _ranked_pairs(top):
                places = ranks.setdefault(pair, [0] * len(systems))
                places[s] = min(rank, places[s] or rank)
    numbers = {query: n for n, query in enumerate(queries)}
    documents = tuple(
        PooledDocument(*pair, tuple(ranks[pair]))
        for pair in sorted(ranks, key=lambda pair: (numbers[pair[0]], pair[1]))
    )
    return Pool(tuple(judged.systems), depth, documents)


def _ranked_pairs(top: TopDocuments) -> Iterator[tuple[Pair, int]]:
    """Each document of one system's lists, and its rank."""
    rows = zip(top.query.tolist(), top.document.tolist(), top.first.tolist(), strict=True)
    for query, document, rank in rows:
        yield (top.runs.queries[query], top.runs.vocabulary[document]), rank
