"""Ids as codes into a sorted vocabulary; no string is made until somebody looks at one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import IntArray, make_readonly
from fusion_bench.errors import DataError

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
        """The same column with a vocabulary of its own ids only."""
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
    encoded = [name.encode() for name in names]
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
