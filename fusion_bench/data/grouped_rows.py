"""Rows grouped by query, with ids as codes: what every table of this package is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.id_rules import apply_rule
from fusion_bench.data.ordering import IntArray, make_readonly
from fusion_bench.errors import DataError
from fusion_bench.util.digests import hash_values

#: Ids from which on importing pyarrow costs less than sorting them in Python.
MANY_IDS: Final = 100_000


class IdVocabulary(Sequence[str]):
    """Distinct ids, sorted by bytes.

    Attributes:
        data: UTF-8 bytes of sorted ids, of which these may be only some; uint8.
        limits: Where each id of the data begins, and where the last one ends.
        places: Shape (n,), ascending: which ids of the data these are; all by default.
    """

    def __init__(
        self, data: NDArray[np.uint8], limits: IntArray, places: IntArray | None = None
    ) -> None:
        self.data, self.limits = data, limits
        self.places = np.arange(len(limits) - 1) if places is None else places
        for array in (self.data, self.limits, self.places):
            make_readonly(array)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> str:  # type: ignore[override] # nobody needs slices
        place = self.places[index]
        return self.data[self.limits[place] : self.limits[place + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        text = self.data.tobytes()
        starts, ends = self.limits[self.places].tolist(), self.limits[self.places + 1].tolist()
        return (text[start:end].decode() for start, end in zip(starts, ends, strict=True))

    def decode(self, codes: IntArray) -> tuple[str, ...]:
        """The ids of codes of any number; one that stands often is decoded once."""
        distinct, places = np.unique(codes, return_inverse=True)
        names = [self[code] for code in distinct.tolist()]
        return tuple(names[place] for place in places.tolist())

    def encode_texts(self) -> tuple[IntArray, bytes]:
        """The length of each id in bytes, shape (n,), and the bytes of all, one after another."""
        starts, lengths = self.limits[self.places], np.diff(self.limits)[self.places]
        blocks = []
        for start in range(0, len(self), MANY_IDS):
            sizes = lengths[start : start + MANY_IDS]
            shifts = starts[start : start + MANY_IDS] - (np.cumsum(sizes) - sizes)
            blocks.append(self.data[np.repeat(shifts, sizes) + np.arange(int(sizes.sum()))])
        return lengths, b"".join(block.tobytes() for block in blocks)


@dataclass(frozen=True, eq=False)
class CategoricalIds:
    """A column of ids.

    Attributes:
        codes: Shape (n,): codes into the vocabulary.
        vocabulary: Sorted; may hold ids that this column does not.
    """

    codes: IntArray
    vocabulary: IdVocabulary

    def __len__(self) -> int:
        return len(self.codes)

    def drop_unused(self) -> CategoricalIds:
        """Drop the ids that no row uses from the column's vocabulary."""
        is_used = np.zeros(len(self.vocabulary), dtype=bool)
        is_used[self.codes] = True
        if is_used.all():
            return self
        known = self.vocabulary
        kept = IdVocabulary(known.data, known.limits, known.places[is_used])
        return CategoricalIds((np.cumsum(is_used) - 1)[self.codes], kept)


def encode_ids(ids: Sequence[str] | CategoricalIds) -> CategoricalIds:
    """A column of ids as codes, with a vocabulary of its own ids only."""
    if isinstance(ids, CategoricalIds):
        return ids.drop_unused()
    try:
        distinct = set(ids)
    except TypeError as error:  # a list or a mapping stands where an id is needed
        raise DataError(f"ids are text or whole numbers: {error}") from None
    texts = _id_texts(distinct)
    names = sorted(texts.values())  # code points sort as UTF-8 bytes do
    order = {name: code for code, name in enumerate(names)}
    code_of = {given: order[name] for given, name in texts.items()}
    codes = np.fromiter(map(code_of.__getitem__, ids), dtype=np.int64, count=len(ids))
    try:
        encoded = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise DataError(
            f"id {error.object!r} holds half of a surrogate pair: mend the id"
        ) from None
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    limits = np.cumsum([0, *map(len, encoded)])
    return CategoricalIds(codes, IdVocabulary(data, limits))


def _id_texts(given: set[Any]) -> dict[Any, str]:
    """Distinct ids as text: data frames and other libraries have whole numbers too.

    Raises:
        DataError: One is neither, or is given both as a number and as text.
    """
    if set(map(type, given)) <= {str}:
        return {name: name for name in given}
    for name in given:
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            raise DataError(
                f"id {name!r} is neither text nor a whole number: make the ids text (data frames "
                "read whole numbers with a gap among them as fractions)"
            )
        if not isinstance(name, str) and str(name) in given:
            raise DataError(
                f"id {str(name)!r} is given both as a number and as text: make all ids text"
            )
    return {name: str(name) for name in given}


def encode_arrow(columns: list[Any]) -> CategoricalIds:
    """The strings of Arrow arrays, one array after another, as codes.

    Args:
        columns: Of type ``large_string``, not empty; the list is emptied, for they are large.
    """
    if (encoded := _encode_short_ids(columns)) is not None:
        columns.clear()
        return encoded
    import pyarrow as pa
    import pyarrow.compute as pc

    pool = pa.system_memory_pool()  # the other ones keep what was freed
    strings = pa.chunked_array(columns)
    columns.clear()
    encoded = pc.dictionary_encode(strings, memory_pool=pool)
    del strings
    names = encoded.chunk(0).dictionary
    codes = [np.from_dlpack(chunk.indices) for chunk in encoded.chunks]
    del encoded
    order = pc.sort_indices(names, memory_pool=pool)
    _, limits, data = pc.take(names, order, memory_pool=pool).buffers()
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.from_dlpack(order)] = np.arange(len(names))
    vocabulary = IdVocabulary(
        np.frombuffer(data, dtype=np.uint8), np.frombuffer(limits, np.int64)[: len(names) + 1]
    )
    return CategoricalIds(rank[np.concatenate(codes)], vocabulary)


#: Bytes of an id, behind what all ids begin with, that one integer holds.
SHORT_ID: Final = 8


def _encode_short_ids(columns: Sequence[Any]) -> CategoricalIds | None:
    """Ids of at most eight bytes behind their common beginning, sorted as integers; None = longer.

    Args:
        columns: Arrow arrays of type ``large_string``, not empty.
    """
    texts, starts, sizes = [], [], []
    for column in columns:
        _, limits, data = column.buffers()
        ends = np.frombuffer(limits, np.int64)[column.offset : column.offset + len(column) + 1]
        texts.append(np.frombuffer(b"" if data is None else data, np.uint8)[: ends[-1]])
        starts.append(ends[:-1])
        sizes.append(np.diff(ends))
    first = texts[0][starts[0][0] :][: sizes[0][0]]
    common = min(len(first), *(int(size.min()) for size in sizes))
    at = 0
    while at < common and all(
        (text[start + at] == first[at]).all() for text, start in zip(texts, starts, strict=True)
    ):
        at += 1
    longest = max(int(size.max()) for size in sizes) - at
    if longest > SHORT_ID or not all(text.all() for text in texts):  # 0 stands behind an id's end
        return None
    keys = np.zeros(sum(map(len, sizes)), dtype=np.uint64)
    for key, text, start, size in zip(
        np.split(keys, np.cumsum([*map(len, sizes)])[:-1]), texts, starts, sizes, strict=True
    ):
        for place in range(at, at + longest):
            rows = slice(None) if (size > place).all() else np.flatnonzero(size > place)
            shift = np.uint64(8 * (SHORT_ID - 1 - place + at))
            key[rows] |= text[start[rows] + place].astype(np.uint64) << shift
    order = np.argsort(keys)
    ranked = keys[order]
    is_new = np.ones(len(keys), dtype=bool)
    np.not_equal(ranked[1:], ranked[:-1], out=is_new[1:])
    codes = np.empty(len(keys), dtype=np.int64)
    codes[order] = np.cumsum(is_new) - 1
    letters = ranked[is_new].astype(">u8").view(np.uint8).reshape(-1, SHORT_ID)
    whole = np.hstack([np.broadcast_to(first[:at], (len(letters), at)), letters])
    limits = np.cumsum([0, *np.count_nonzero(whole, axis=1)])
    return CategoricalIds(codes, IdVocabulary(whole[whole > 0], limits))


def unite_vocabularies(
    vocabularies: Sequence[IdVocabulary],
) -> tuple[IdVocabulary, list[IntArray]]:
    """The distinct ids of several vocabularies, sorted, and each one's codes among them."""
    first, sizes = vocabularies[0], [len(vocabulary) for vocabulary in vocabularies]
    if all(vocabulary.data is first.data for vocabulary in vocabularies):
        places = np.concatenate([vocabulary.places for vocabulary in vocabularies])
        column = CategoricalIds(places, IdVocabulary(first.data, first.limits)).drop_unused()
    elif sum(sizes) < MANY_IDS:
        column = encode_ids([name for vocabulary in vocabularies for name in vocabulary])
    else:
        column = encode_arrow([_to_arrow(vocabulary) for vocabulary in vocabularies])
    return column.vocabulary, np.split(column.codes, np.cumsum(sizes)[:-1])


def _to_arrow(vocabulary: IdVocabulary) -> Any:  # noqa: ANN401 - an array of pyarrow
    import pyarrow as pa

    limits, data = pa.py_buffer(vocabulary.limits), pa.py_buffer(vocabulary.data)
    table = pa.LargeStringArray.from_buffers(len(vocabulary.limits) - 1, limits, data)
    # pa.array would import pandas, which takes half a second.
    places = pa.py_buffer(np.ascontiguousarray(vocabulary.places, dtype=np.int64))
    return table.take(pa.Array.from_buffers(pa.int64(), len(vocabulary), [None, places]))


T = TypeVar("T", bound=np.generic)


class GroupedRows(NamedTuple):
    """Rows grouped by query."""

    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: IdVocabulary
    documents: IntArray
    rows: IntArray | None  # original row of each grouped row; None = they came grouped

    def take_column(self, column: NDArray[T]) -> NDArray[T]:
        """A column of the original rows, grouped."""
        return column if self.rows is None else column[self.rows]

    def original_row(self, at: int) -> int:
        """The original row of a grouped one."""
        return at if self.rows is None else int(self.rows[at])


def group_rows(
    queries: Sequence[str] | CategoricalIds,
    documents: Sequence[str] | CategoricalIds,
    kind: str,
    *,
    sort_queries: bool = False,
) -> GroupedRows:
    """Group rows by query, keeping file order inside a query, and encode the document ids.

    Args:
        queries: Shape (N,).
        documents: Shape (N,).
        kind: What a row is, for an error.
        sort_queries: Queries in the order of their ids, by bytes, in place of the file's.

    Raises:
        DataError: There is no row, or an id is empty or holds the character NUL.
    """
    if len(queries) == 0:
        raise DataError(f"no {kind} in it: at least one row is needed")
    query, document = encode_ids(queries), encode_ids(documents)
    for what, column in (("query", query), ("document", document)):
        if column.vocabulary[0] == "":  # it is sorted
            raise DataError(f"empty {what} id", row=int(np.argmin(column.codes)))
        if not column.vocabulary.data.all():  # some id, perhaps of another file, holds NUL
            holds = np.array(["\0" in name for name in column.vocabulary])[column.codes]
            if holds.any():
                raise DataError(f"a {what} id holds NUL (\\0)", row=int(np.argmax(holds)))
    if sort_queries:
        codes, names = query.codes, tuple(query.vocabulary)
    else:
        is_head = np.ones(len(query), dtype=bool)  # most rows have the query of the row before
        np.not_equal(query.codes[1:], query.codes[:-1], out=is_head[1:])
        known, first = np.unique(query.codes[is_head], return_index=True)
        by_appearance = known[np.argsort(first)]
        number = np.empty(len(query.vocabulary), dtype=np.int64)
        number[by_appearance] = np.arange(len(known))
        ids = tuple(query.vocabulary)
        codes, names = number[query.codes], tuple(ids[code] for code in by_appearance.tolist())
    offsets = to_offsets(np.bincount(codes, minlength=len(names)))
    if (codes[1:] >= codes[:-1]).all():
        return GroupedRows(names, offsets, document.vocabulary, document.codes, None)
    rows = np.argsort(codes, kind="stable")
    return GroupedRows(names, offsets, document.vocabulary, document.codes[rows], rows)


def refuse_ragged(**columns: Sized | None) -> None:
    """Raise where parallel columns are not equally long; None = no such column."""
    sizes = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(sizes.values())) > 1:
        given = ", ".join(f"{size} {name}" for name, size in sizes.items())
        raise DataError(f"the columns must be equally long, given {given}")


def number_by_appearance(values: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Codes in order of first appearance, and what they stand for."""
    return _remember_codes(values) if isinstance(values, tuple) else _number_values(values)


def _number_values(values: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    table: dict[str, int] = {}
    listed = [table.setdefault(value, len(table)) for value in values]
    codes = np.array(listed, dtype=np.int64)
    make_readonly(codes)
    return codes, tuple(table)


#: The groups of a collection are numbered for each comparison.
_remember_codes = lru_cache(maxsize=2)(_number_values)


def find_repeats(grouped: GroupedRows, order: IntArray | slice) -> NDArray[np.bool_]:
    """Which rows, taken in ``order``, name a document that stood earlier in the same query."""
    pairs = _number_pairs(grouped)[order]
    is_repeat = np.ones(len(pairs), dtype=bool)
    is_repeat[np.unique(pairs, return_index=True)[1]] = False
    return is_repeat


def _number_pairs(grouped: GroupedRows) -> IntArray:
    """A number for each pair of query and document."""
    return query_of_rows(grouped.offsets) * len(grouped.vocabulary) + grouped.documents


def refuse_duplicates(grouped: GroupedRows, advice: str) -> None:
    """Raise for the first row that repeats a (query, document) pair, and say what to do."""
    pairs = np.sort(_number_pairs(grouped))
    if (pairs[1:] != pairs[:-1]).all():
        return
    at = int(np.argmax(find_repeats(grouped, slice(None))))
    query = int(np.searchsorted(grouped.offsets, at, side="right")) - 1
    raise DataError(
        f"document {grouped.vocabulary[grouped.documents[at]]!r} appears twice for query "
        f"{grouped.queries[query]!r}: {advice}",
        row=grouped.original_row(at),
    )


def find_starts(grouped: GroupedRows, order: IntArray) -> IntArray:
    """Where each pair of query and document begins among the rows that ``order`` sorts by them."""
    pairs = _number_pairs(grouped)[order]
    return np.flatnonzero(np.diff(pairs, prepend=-1))


def find_own_ids(grouped: GroupedRows) -> NDArray[np.bool_]:
    """Which rows name a document whose id is the query's."""
    codes = {name: code for code, name in enumerate(grouped.vocabulary)}
    own = np.array([codes.get(query, -1) for query in grouped.queries], dtype=np.int64)
    return np.asarray(grouped.documents == own[query_of_rows(grouped.offsets)])


def change_ids(grouped: GroupedRows, rule: str, *, is_whole: bool = False) -> GroupedRows:
    """The rows with each document id as a rule of :mod:`fusion_bench.data.id_rules` makes it.

    Args:
        grouped: The rows.
        rule: Such as ``decimal``.
        is_whole: Whether no two ids of the file may become one; by default, none of one query.

    Raises:
        DataError: Two ids become one, or an id becomes empty.
        ConfigError: There is no such rule.
    """
    old = list(grouped.vocabulary)
    new = encode_ids(apply_rule(rule, old))
    if new.vocabulary[0] == "":
        raise DataError(f"ids: {rule!r} leaves nothing of {old[int(np.argmin(new.codes))]!r}")
    changed = grouped._replace(vocabulary=new.vocabulary, documents=new.codes[grouped.documents])
    if len(new.vocabulary) < len(old):
        owners = query_of_rows(grouped.offsets) * (not is_whole)
        triples = np.column_stack([owners, changed.documents, grouped.documents])
        distinct = np.unique(triples, axis=0)
        is_merged = (distinct[1:, :2] == distinct[:-1, :2]).all(axis=1)
        if is_merged.any():
            at = int(np.argmax(is_merged))
            first, second = (old[code] for code in distinct[at : at + 2, 2].tolist())
            raise DataError(
                f"ids: {rule!r} makes {first!r} and {second!r} one document: use another rule, or "
                "change the ids in the file"
            )
    return changed


def to_offsets(counts: IntArray) -> IntArray:
    """Offsets of shape (Q+1,) from row counts of shape (Q,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def query_of_rows(offsets: IntArray) -> IntArray:
    """Index of the query that owns each row, shape (N,)."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def rows_of(offsets: IntArray, queries: IntArray) -> IntArray:
    """The rows of these queries, one query after another."""
    counts = np.diff(offsets)[queries]
    before = np.cumsum(counts) - counts
    rows: IntArray = np.repeat(offsets[queries] - before, counts) + np.arange(int(counts.sum()))
    return rows


def find_keys(known: IntArray, keys: IntArray) -> IntArray:
    """Where each key stands among the distinct known ones; -1 = nowhere."""
    if not len(known):
        return np.full(len(keys), -1)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
    rows = order[at]
    return np.where(known[rows] == keys, rows, -1)


def count_within_queries(offsets: IntArray) -> IntArray:
    """1, 2, 3 … inside each query, shape (N,)."""
    return np.arange(1, int(offsets[-1]) + 1) - np.repeat(offsets[:-1], np.diff(offsets))


def count_by_query(chosen: NDArray[np.bool_], offsets: IntArray) -> IntArray:
    """(Q,): how many rows of each query are chosen, (N,)."""
    padded = np.append(chosen, False)  # an empty query may begin behind the last row
    counts = np.add.reduceat(padded, offsets[:-1], dtype=np.int64)
    return np.where(np.diff(offsets) > 0, counts, 0)


def query_slices(queries: tuple[str, ...], offsets: IntArray) -> Iterator[tuple[str, slice]]:
    """Each query with the slice of its rows."""
    for q, query in enumerate(queries):
        yield query, slice(int(offsets[q]), int(offsets[q + 1]))


def hash_table(
    queries: tuple[str, ...], offsets: IntArray, *parts: NDArray[Any] | IdVocabulary
) -> str:
    """SHA-256 over a table, the same for every order of its queries.

    Args:
        queries: Query ids.
        offsets: Shape (Q+1,).
        parts: Arrays of shape (N,), permuted along with the queries, or a vocabulary.
    """
    order = np.array(sorted(range(len(queries)), key=queries.__getitem__), dtype=np.int64)
    rows = rows_of(offsets, order)
    values: list[Any] = [[queries[q] for q in order], np.diff(offsets)[order]]
    for part in parts:
        values += part.encode_texts() if isinstance(part, IdVocabulary) else [part[rows]]
    return hash_values(*values)
