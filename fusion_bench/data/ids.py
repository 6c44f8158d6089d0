"""Ids as codes into a sorted vocabulary; no string is made until somebody looks at one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import IntArray, make_readonly

#: Bytes that are compared at a time.
WORD: Final = 8
#: The first n bytes of a word.
FIRST_BYTES: Final = ~np.array([(1 << 8 * (WORD - n)) - 1 for n in range(WORD + 1)], np.uint64)
#: Ids whose bytes are gathered at a time.
BLOCK: Final = 1 << 16


class IdBytes(NamedTuple):
    """The UTF-8 bytes of n ids.

    Attributes:
        data: Bytes that hold every id, uint8.
        starts: Shape (n,): where each begins.
        widths: Shape (n,): how many bytes it has.
    """

    data: NDArray[np.uint8]
    starts: IntArray
    widths: IntArray

    @classmethod
    def from_strings(cls, names: Sequence[str]) -> IdBytes:
        """The bytes of these ids, one after another."""
        encoded = [name.encode() for name in names]
        widths = np.array([len(name) for name in encoded], dtype=np.int64)
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        return cls(data, np.cumsum(widths) - widths, widths)

    def take(self, places: IntArray) -> IdBytes:
        """The ids at these places; their bytes stay where they are."""
        return IdBytes(self.data, self.starts[places], self.widths[places])

    def join_blocks(self, separator: bytes = b"") -> Iterator[bytes]:
        """The bytes of the ids in order, a separator behind each, some ids at a time."""
        gap = len(separator)
        for at in range(0, len(self.starts), BLOCK):
            starts, widths = self.starts[at : at + BLOCK], self.widths[at : at + BLOCK]
            ends = np.cumsum(widths)
            source = np.repeat(starts - (ends - widths), widths) + np.arange(int(ends[-1]))
            if not gap:
                yield self.data[source].tobytes()
                continue
            joined = np.zeros(int(ends[-1]) + gap * len(ends), dtype=np.uint8)
            is_id = np.ones(len(joined), dtype=bool)
            for byte in range(gap):
                places = ends + gap * np.arange(len(ends)) + byte
                is_id[places], joined[places] = False, separator[byte]
            joined[is_id] = self.data[source]
            yield joined.tobytes()


class IdVocabulary(Sequence[str]):
    """Distinct ids, sorted by bytes.

    Attributes:
        table: Sorted ids, of which these may be only some.
        places: Shape (n,), ascending: where each id stands in the table; None = all of them.
    """

    def __init__(self, table: IdBytes, places: IntArray | None = None) -> None:
        for array in (*table, places):
            if array is not None:
                make_readonly(array)
        self.table, self.places = table, places

    def __len__(self) -> int:
        return len(self.table.starts if self.places is None else self.places)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self))))
        place = index if self.places is None else self.places[index]
        start = self.table.starts[place]
        return str(self.table.data[start : start + self.table.widths[place]].tobytes(), "utf-8")

    def __iter__(self) -> Iterator[str]:
        data, starts, widths = self.bytes
        text = data.tobytes()
        for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
            yield text[start : start + width].decode()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, IdVocabulary | tuple | list):
            return tuple(self) == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"IdVocabulary({list(self)!r})"

    @property
    def bytes(self) -> IdBytes:
        """The bytes of these ids alone."""
        return self.table if self.places is None else self.table.take(self.places)

    def select(self, places: IntArray) -> IdVocabulary:
        """The ids at these places, which are ascending."""
        return IdVocabulary(self.table, places if self.places is None else self.places[places])


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
        """The same column with a vocabulary of its own ids only."""
        is_used = np.zeros(len(self.vocabulary), dtype=bool)
        is_used[self.codes] = True
        if is_used.all():
            return self
        places = np.flatnonzero(is_used)
        codes = np.empty(len(is_used), dtype=np.int64)
        codes[places] = np.arange(len(places))
        return CategoricalIds(codes[self.codes], self.vocabulary.select(places))


def encode_ids(ids: Sequence[str] | CategoricalIds) -> CategoricalIds:
    """A column of ids as codes, with a vocabulary of its own ids only."""
    if isinstance(ids, CategoricalIds):
        return ids.drop_unused()
    names = sorted(set(ids))  # code points sort as UTF-8 bytes do
    code_of = {name: code for code, name in enumerate(names)}
    codes = np.fromiter(map(code_of.__getitem__, ids), dtype=np.int64, count=len(ids))
    return CategoricalIds(codes, IdVocabulary(IdBytes.from_strings(names)))


def unite_vocabularies(
    vocabularies: Sequence[IdVocabulary],
) -> tuple[IdVocabulary, list[IntArray]]:
    """The distinct ids of several vocabularies, sorted, and each one's codes among them."""
    table = vocabularies[0].table
    if any(vocabulary.table is not table for vocabulary in vocabularies):
        return _unite_tables(vocabularies)
    every = np.arange(len(table.starts))
    places = [every if known.places is None else known.places for known in vocabularies]
    column = CategoricalIds(np.concatenate(places), IdVocabulary(table)).drop_unused()
    ends = np.cumsum([len(known) for known in places])
    return column.vocabulary, np.split(column.codes, ends[:-1])


def _unite_tables(
    vocabularies: Sequence[IdVocabulary],
) -> tuple[IdVocabulary, list[IntArray]]:
    """The same where no table is shared."""
    parts = [vocabulary.bytes for vocabulary in vocabularies]
    before = np.cumsum([0, *(len(part.data) for part in parts)])
    joined = IdBytes(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.starts + at for part, at in zip(parts, before, strict=False)]),
        np.concatenate([part.widths for part in parts]),
    )
    order, is_first = sort_by_bytes(joined)
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(is_first) - 1
    ends = np.cumsum([len(part.starts) for part in parts])
    return IdVocabulary(joined.take(order[is_first])), np.split(codes, ends[:-1])


def sort_by_bytes(ids: IdBytes) -> tuple[IntArray, NDArray[np.bool_]]:
    """Order ids by their bytes: eight at a time, and only ids that are equal so far go on.

    Returns:
        The order, shape (n,), and whether each id in this order differs from the one before.
    """
    if not ids.data.all():  # a null byte looks like the end of an id
        return _sort_plainly(ids)
    order = np.arange(len(ids.starts))
    is_first = np.zeros(len(order), dtype=bool)
    is_first[:1] = True
    rows, position = order.copy(), _common_prefix(ids)
    while len(rows):
        groups = np.cumsum(is_first[rows]) - 1
        size = (8 * WORD - int(groups[-1]).bit_length()) // 8  # bytes that fit behind the group
        keys = _read_words(ids.take(order[rows]), position) >> np.uint64(8 * (WORD - size))
        if groups[-1]:
            keys |= groups.view(np.uint64) << np.uint64(8 * size)
        by_key = np.argsort(keys)
        order[rows], keys = order[rows[by_key]], keys[by_key]
        is_first[rows[1:]] |= keys[1:] != keys[:-1]
        position += size
        rows = _tied_rows(is_first, rows, ids.widths[order[rows]], position)
    return order, is_first


def _sort_plainly(ids: IdBytes) -> tuple[IntArray, NDArray[np.bool_]]:
    text = ids.data.tobytes()
    spans = zip(ids.starts.tolist(), ids.widths.tolist(), strict=True)
    names = [text[start : start + width] for start, width in spans]
    order = sorted(range(len(names)), key=names.__getitem__)
    is_first = [n == 0 or names[at] != names[order[n - 1]] for n, at in enumerate(order)]
    return np.array(order, dtype=np.int64), np.array(is_first, dtype=bool)


def _common_prefix(ids: IdBytes) -> int:
    """How many bytes all ids begin with, up to the longest one."""
    position, longest = 0, int(ids.widths.max(initial=0))
    while position < longest:
        words = _read_words(ids, position)
        varying = int(np.bitwise_or.reduce(words ^ words[0]))
        if varying:
            return position + (8 * WORD - varying.bit_length()) // 8
        position += WORD
    return position


def _read_words(ids: IdBytes, position: int) -> NDArray[np.uint64]:
    """(n,): eight bytes of each id from a position on, big-endian; zeros behind its end."""
    data = ids.data if len(ids.data) >= WORD else np.pad(ids.data, (0, WORD))
    inside = np.clip(ids.widths - position, 0, WORD)
    starts = ids.starts + position
    last = len(data) - WORD
    every = np.ndarray((last + 1,), f"V{WORD}", data, strides=(1,))
    words = every[np.minimum(starts, last)].view(">u8").astype(np.uint64)
    near_end = np.flatnonzero(starts > last)
    shift = np.minimum(starts[near_end] - last, WORD - 1).astype(np.uint64)
    words[near_end] <<= shift * np.uint64(8)
    words &= FIRST_BYTES[inside]
    return words


def _tied_rows(
    is_first: NDArray[np.bool_], rows: IntArray, widths: IntArray, position: int
) -> IntArray:
    """Those of the sorted rows that are equal up to a position, and not all at their end."""
    follows = ~is_first[rows]
    has_twin = follows.copy()
    has_twin[:-1] |= follows[1:]
    rows, widths = rows[has_twin], widths[has_twin]
    if len(rows) == 0:
        return rows
    heads = np.flatnonzero(is_first[rows])
    goes_on = np.maximum.reduceat(widths, heads) > position
    return rows[np.repeat(goes_on, np.diff(heads, append=len(rows)))]
