"""Queries that are linked by equal or similar texts, lists or judgments, and the groups they form.

A mean over Q queries of which some are copies of others has fewer than Q independent values, so an
interval that counts queries singly is too narrow, and a tuning split can hold a query out whose
copy was tuned on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from fusion_bench.data.ordering import IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups.equal_lists import (
    hash_lists,
    hash_relevant,
    match_keys,
    measure_overlap,
)
from fusion_bench.data.query_groups.similar_texts import (
    jaccard_index,
    normalize_text,
    propose_pairs,
)
from fusion_bench.data.records import Query
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.data.run import Run

#: Why two queries are linked.
LinkReason: TypeAlias = Literal[
    "same text", "similar text", "same lists", "same relevant documents"
]
#: How the declared groups of a dataset are joined.
Grouping: TypeAlias = Literal["identical", "auto", "none", "file"]
#: Least Jaccard index of the shingles of similar texts, and least overlap of their lists.
MIN_SIMILARITY: Final = 0.4
MIN_OVERLAP: Final = 0.5
#: A grouping is refused as automatic where one group holds more of the queries than this.
MAX_SHARE: Final = 0.2
#: Nor are identical queries joined by themselves where fewer groups than this would remain.
MIN_GROUPS: Final = 20


class QueryLink(NamedTuple):
    """Two queries that depend on each other: their indices, the lower first, and why."""

    first: int
    second: int
    reason: LinkReason


@dataclass(frozen=True, eq=False)
class QueryGroups:
    """Declared groups, joined where queries of two of them are linked.

    Attributes:
        queries: Query ids, (Q,).
        declared: Their declared groups, (Q,); a query without one is its own.
        links: The links between queries of different declared groups.
    """

    queries: tuple[str, ...]
    declared: tuple[str, ...]
    links: tuple[QueryLink, ...]

    @cached_property
    def codes(self) -> IntArray:
        """(Q,): codes of the groups in order of first appearance; links are followed."""
        roots = list(range(len(self.queries)))

        def find_root(i: int) -> int:
            while roots[i] != i:
                roots[i] = roots[roots[i]]
                i = roots[i]
            return i

        first: dict[str, int] = {}
        members = [(first.setdefault(group, i), i) for i, group in enumerate(self.declared)]
        for a, b in (*members, *((link.first, link.second) for link in self.links)):
            low, high = sorted((find_root(a), find_root(b)))
            roots[high] = low
        return number_by_appearance([str(find_root(i)) for i in range(len(roots))])[0]

    @cached_property
    def joined(self) -> IntArray:
        """Codes of the groups that hold queries of more than one declared group, ascending."""
        pairs = {
            (code, group) for code, group in zip(self.codes.tolist(), self.declared, strict=True)
        }
        counts = Counter(code for code, _ in pairs)
        return np.array(sorted(code for code, count in counts.items() if count > 1), dtype=np.int64)

    @property
    def sizes(self) -> IntArray:
        """Numbers of queries of the joined groups."""
        return np.bincount(self.codes)[self.joined].astype(np.int64)

    @property
    def is_too_large(self) -> bool:
        """Whether a joined group holds more than a fifth of the queries: a chain, or a category."""
        return bool(self.sizes.max(initial=0) > MAX_SHARE * len(self.queries))

    @property
    def is_usable(self) -> bool:
        """Whether nobody needs to look at the groups before they are used.

        At least 20 groups remain, at least half as many as were declared, and none is too large.
        """
        count = int(self.codes.max(initial=-1)) + 1
        is_enough = count >= MIN_GROUPS and 2 * count >= len(set(self.declared))
        return is_enough and not self.is_too_large

    @property
    def joined_names(self) -> dict[str, str]:
        """The group of each query of the joined groups, by query."""
        joined = set(self.joined.tolist())
        members = zip(self.queries, self.codes.tolist(), self.names(), strict=True)
        return {query: name for query, code, name in members if code in joined}

    def names(self) -> tuple[str, ...]:
        """(Q,): the name of each query's group: the first of the declared ones it joins.

        First by name, so that the order of the queries changes no name, and so no split.
        """
        codes = self.codes.tolist()
        by_code = dict(
            sorted(zip(codes, self.declared, strict=True), key=itemgetter(1), reverse=True)
        )
        return tuple(by_code[code] for code in codes)


def find_query_groups(
    queries: Sequence[str],
    records: Mapping[str, Query],
    runs: Sequence[Run],
    qrels: Qrels,
    *,
    identical: bool = False,
) -> QueryGroups:
    """Look for queries that depend on each other.

    Two queries are linked by the same normalized text; by the same first 100 documents in the same
    order in every list; by the same relevant documents with the same grades; or by similar texts
    (Jaccard index of three-character shingles at least .4) of which at least half of the first ten
    documents are the same, on average over the runs.

    Args:
        queries: The queries to look at, (Q,).
        records: What is known of them, by id; texts and declared groups are used.
        runs: Their lists.
        qrels: Their judgments.
        identical: Link the same text or the same lists alone, and no queries of two splits: what
            is joined without being asked undoes no split that somebody chose.
    """
    known = [records.get(query, Query(query)) for query in queries]
    declared = tuple(record.group or record.id for record in known)
    texts = [normalize_text(record.text) if record.text else "" for record in known]
    pairs: dict[tuple[int, int], LinkReason] = {}
    keys: list[tuple[LinkReason, Sequence[Hashable | None]]] = [
        ("same text", [text or None for text in texts]),
        ("same lists", hash_lists(queries, runs)),
    ]
    if not identical:
        keys.append(("same relevant documents", hash_relevant(queries, qrels)))
    parts = [record.split if identical else None for record in known]
    for reason, column in keys:
        for pair in match_keys([k and (part, k) for k, part in zip(column, parts, strict=True)]):
            pairs.setdefault(pair, reason)
    for pair in () if identical else _similar_pairs(queries, texts, runs):
        pairs.setdefault(pair, "similar text")
    links = (QueryLink(*pair, reason) for pair, reason in sorted(pairs.items()))
    crossing = tuple(link for link in links if declared[link.first] != declared[link.second])
    return QueryGroups(tuple(queries), declared, crossing)


def _similar_pairs(
    queries: Sequence[str], texts: Sequence[str], runs: Sequence[Run]
) -> list[tuple[int, int]]:
    """Pairs of different texts that are similar and whose lists overlap."""
    first: dict[str, int] = {}
    for i, text in enumerate(texts):
        if text:
            first.setdefault(text, i)
    distinct, index = list(first), np.array(list(first.values()), dtype=np.int64)
    proposed = propose_pairs(distinct)
    overlap = measure_overlap(queries, runs, index[proposed])
    return [
        (int(index[a]), int(index[b]))
        for a, b in proposed[overlap >= MIN_OVERLAP].tolist()
        if jaccard_index(distinct[a], distinct[b]) >= MIN_SIMILARITY
    ]
