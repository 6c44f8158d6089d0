"""Groups of queries that equal or similar texts, lists or judgments link.

A text is the set of its shingles, here all runs of three characters of the normalized text; two
texts are as similar as the Jaccard index of their sets. MinHash only proposes pairs, the index
itself decides (Broder 1997, "On the resemblance and containment of documents"; banding as in
Leskovec, Rajaraman & Ullman, "Mining of Massive Datasets", section 3.4).

A mean over Q queries of which some are copies of others has fewer than Q independent values, so an
interval that counts queries singly is too narrow, and a tuning split can hold a query out whose
copy was tuned on.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import number_by_appearance, query_slices
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.util.digests import mix_words

#: MinHash: bands, and rows of each. Of pairs of similarity .4 this misses 4 %, of .5 .2 %.
BANDS: Final = 48
ROWS: Final = 3
#: A band's value that more texts share is a phrase in common, not a copy.
MAX_BUCKET: Final = 200

_INCREMENT: Final = 0x9E3779B97F4A7C15


def normalize_text(text: str) -> str:
    """Lower case, compatible characters made equal (NFKC), all but letters and digits one blank."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split())


def jaccard_index(first: str, second: str) -> float:
    """Shared shingles ÷ all distinct shingles of two normalized texts."""
    shingles, others = (set(_shingle_texts([text])[0].tolist()) for text in (first, second))
    return len(shingles & others) / len(shingles | others)


def propose_pairs(texts: Sequence[str]) -> IntArray:
    """Pairs of texts that share a band of their MinHash signatures, shape (P, 2), each once.

    Args:
        texts: Normalized, none of them empty.
    """
    if len(texts) < 2:
        return np.empty((0, 2), dtype=np.int64)
    words, starts = _shingle_texts(texts)
    pairs: set[int] = set()
    for band in range(BANDS):
        signature = np.zeros(len(texts), dtype=np.uint64)
        for row in range(ROWS):
            seed = (band * ROWS + row + 1) * _INCREMENT % 2**64
            hashed = (words ^ np.uint64(seed)) * np.uint64(seed | 1)
            signature = mix_words(signature ^ np.minimum.reduceat(hashed, starts))
        for bucket in _equal_values(signature):
            pairs.update(a * len(texts) + b for a, b in combinations(bucket, 2))
    codes = np.fromiter(pairs, dtype=np.int64, count=len(pairs))
    return np.stack(np.divmod(np.sort(codes), len(texts)), axis=1)


def _shingle_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint64], IntArray]:
    """Hashes of the shingles of all texts, and where those of each text start.

    A blank stands before and after a text, so that one of a single character has a shingle.
    """
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    padded = "".join(f" {text} " for text in texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(padded, dtype="<u4").astype(np.uint64)
    runs = codes[:-2] | codes[1:-1] << np.uint64(21) | codes[2:] << np.uint64(42)
    starts = np.concatenate([[0], np.cumsum(sizes + 2)[:-1]])
    is_inside = np.ones(len(runs), dtype=bool)
    for gap in (1, 2):  # the two runs that begin in one text and end in the next
        is_inside[starts[1:] - gap] = False
    return mix_words(runs[is_inside]), np.concatenate([[0], np.cumsum(sizes)[:-1]])


def _equal_values(values: NDArray[np.uint64]) -> Iterator[list[int]]:
    """Indices of equal values, ascending, where at least two and not too many are equal."""
    order = np.argsort(values, kind="stable")
    heads = np.flatnonzero(np.diff(values[order], prepend=values[order[:1]] + np.uint64(1)) != 0)
    sizes = np.diff(heads, append=len(values))
    for i in np.flatnonzero((sizes > 1) & (sizes <= MAX_BUCKET)).tolist():
        yield order[heads[i] : heads[i] + sizes[i]].tolist()


#: Ranks down to which lists are compared for overlap.
TOP: Final = 10
#: Ranks down to which lists must be equal to be called so.
EQUAL_TOP: Final = 100
#: Equal lists are a sign only where one of them has so many documents.
MIN_LENGTH: Final = 5


def hash_lists(queries: Sequence[str], runs: Iterable[Run]) -> list[Hashable | None]:
    """(Q,): what is equal where all lists are; None = no list of at least five documents."""
    parts: dict[str, list[bytes]] = {query: [] for query in queries}
    longest = dict.fromkeys(queries, 0)
    for run in runs:
        missing = set(queries)
        for query, rows in query_slices(run.queries, run.offsets):
            if query in parts:
                documents = run.documents[rows][:EQUAL_TOP]
                parts[query].append(documents.tobytes())
                longest[query] = max(longest[query], len(documents))
                missing.discard(query)
        for query in missing:
            parts[query].append(b"")
    return [tuple(parts[q]) if longest[q] >= MIN_LENGTH else None for q in queries]


def hash_relevant(queries: Sequence[str], qrels: Qrels) -> list[Hashable | None]:
    """(Q,): what is equal where the relevant documents and their grades are; None = there is none.

    Documents that are judged not relevant do not count.
    """
    known: dict[str, Hashable] = {}
    for query, rows in query_slices(qrels.queries, qrels.offsets):
        documents, grades = qrels.documents[rows], qrels.grades[rows]
        relevant = np.flatnonzero(grades > 0)
        relevant = relevant[np.argsort(documents[relevant], kind="stable")]
        if len(relevant):
            known[query] = (documents[relevant].tobytes(), grades[relevant].tobytes())
    return [known.get(query) for query in queries]


def match_keys(keys: Sequence[Hashable | None]) -> Iterator[tuple[int, int]]:
    """Each index with the first that has the same key; None equals nothing."""
    first: dict[Hashable, int] = {}
    for i, key in enumerate(keys):
        if key is not None and (earlier := first.setdefault(key, i)) != i:
            yield earlier, i


def measure_overlap(queries: Sequence[str], runs: Iterable[Run], pairs: IntArray) -> FloatArray:
    """(P,): the share of the first ten documents that two queries have in common.

    The share of the shorter list, averaged over the runs that answer both; 0 where none does.

    Args:
        queries: Query ids, (Q,).
        runs: Runs; a rerank list holds its first stage's documents and is no evidence.
        pairs: Shape (P, 2): indices of queries.
    """
    total, count = np.zeros(len(pairs)), np.zeros(len(pairs))
    index = {query: i for i, query in enumerate(queries)}
    for run in runs:
        top = np.full((len(queries), TOP), -1, dtype=np.int64)
        for query, rows in query_slices(run.queries, run.offsets):
            if query in index:
                documents = run.documents[rows][:TOP]
                top[index[query], : len(documents)] = documents
        first, second = top[pairs[:, 0]], top[pairs[:, 1]]
        sizes = np.minimum((first >= 0).sum(axis=1), (second >= 0).sum(axis=1))
        shared = np.zeros(len(pairs))
        for column in range(TOP):
            document = first[:, column, None]
            shared += ((document == second) & (document >= 0)).any(axis=1)
        total += np.divide(shared, sizes, out=np.zeros(len(pairs)), where=sizes > 0)
        count += sizes > 0
    return np.divide(total, count, out=np.zeros(len(pairs)), where=count > 0)


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
    if not identical:  # different texts that are similar, and whose lists overlap
        first: dict[str, int] = {}
        for i, text in enumerate(texts):
            if text:
                first.setdefault(text, i)
        distinct, index = list(first), np.array(list(first.values()), dtype=np.int64)
        proposed = propose_pairs(distinct)
        overlap = measure_overlap(queries, runs, index[proposed])
        for a, b in proposed[overlap >= MIN_OVERLAP].tolist():
            if jaccard_index(distinct[a], distinct[b]) >= MIN_SIMILARITY:
                pairs.setdefault((int(index[a]), int(index[b])), "similar text")
    links = (QueryLink(*pair, reason) for pair, reason in sorted(pairs.items()))
    crossing = tuple(link for link in links if declared[link.first] != declared[link.second])
    return QueryGroups(tuple(queries), declared, crossing)
