"""The loops of reading in C, where they were compiled; they find what those in numpy find.

``FUSION_BENCH_NATIVE=0`` switches them off.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.integer_codes import Words
from fusion_bench.data.ordering import FloatArray, IntArray, freeze
from fusion_bench.data.packed_ids import BYTES, Coded, Ids, Part, Repeated

try:
    from fusion_bench.io import _native as compiled
except ImportError:
    compiled = None  # type: ignore[assignment] # it was not compiled

__all__ = [
    "Cells",
    "Numbered",
    "Ordered",
    "Regular",
    "all_cells",
    "code_together",
    "prepared",
    "regular",
    "usable",
]

NEWLINE: Final = ord("\n")
Int32Array: TypeAlias = NDArray[np.int32]
Text: TypeAlias = NDArray[np.uint8]
#: Bytes of a text, and ids of all tables, that the loops can count.
MOST: Final = 2**31 - 1


class Regular(NamedTuple):
    """What a regular text holds, one entry a line.

    Attributes:
        queries: Query ids.
        documents: Document ids.
        values: Scores or grades.
        wide: Whether some byte is not ASCII, so that the text may be no UTF-8, or have white space
            that only Unicode has.
    """

    queries: Repeated
    documents: Cells
    values: FloatArray | IntArray
    wide: bool


class Cells(Ids):
    """Ids that stand in a text still, packed when somebody looks at them.

    Attributes:
        text: The text.
        starts: Shape (n,): where each starts.
        widths: Shape (n,): its bytes, as many as can be packed at most.
        widest: Bytes of the longest one.
    """

    def __init__(
        self, text: Text, starts: NDArray[np.uint32], widths: NDArray[np.uint8], widest: int
    ) -> None:
        self.text, self.starts, self.widths, self.widest = text, starts, widths, widest
        freeze(starts)
        freeze(widths)

    @cached_property
    def words(self) -> Words:  # type: ignore[override]
        """Shape (W, n): word w of each id; read-only."""
        words = np.empty((len(self), self.word_count), dtype=np.uint64)
        compiled.pack(self.text, self.starts, self.widths, words)
        words = np.ascontiguousarray(words.T)
        freeze(words)
        return words

    @property
    def word_count(self) -> int:
        """Words that hold the longest one."""
        return max(-(-self.widest // BYTES), 1)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Ids: ...
    def __getitem__(self, index: int | slice) -> str | Ids:
        if isinstance(index, slice):
            return Cells(self.text, self.starts[index], self.widths[index], self.widest)
        start = int(self.starts[index])
        return self.text[start : start + int(self.widths[index])].tobytes().decode()

    def factorize(self) -> tuple[IntArray, Ids]:
        """Codes that sort as the ids do by bytes, and the distinct ids in that order."""
        (coded,) = code_together([self])
        return coded.codes, coded.whole


class Ordered(Ids):
    """Ids as they first appeared, and their order; put in it when somebody looks at them.

    Attributes:
        packed: Shape (n, W).
        order: Shape (n,): which of them stands where.
    """

    def __init__(self, packed: Words, order: Int32Array) -> None:
        freeze(packed)
        freeze(order)
        self.packed, self.order = packed, order

    @cached_property
    def words(self) -> Words:  # type: ignore[override]
        """Shape (W, n): word w of each id; read-only."""
        words = np.ascontiguousarray(self.packed[self.order].T)
        freeze(words)
        return words

    def __len__(self) -> int:
        return len(self.order)

    def take(self, index: IntArray | NDArray[np.bool_]) -> Ids:
        """The ids at these places."""
        return Ids(np.ascontiguousarray(self.packed[self.order[index]].T))


class Numbered(Coded):
    """As :class:`~fusion_bench.data.packed_ids.Coded`, the ids numbered as they first appeared.

    Attributes:
        whole: The table.
        numbers: Shape (n,).
        places: Shape (ids of the table,): where each number's id stands in it.
    """

    def __init__(self, whole: Ids, numbers: Int32Array, places: Int32Array) -> None:
        freeze(numbers)
        freeze(places)
        self.whole, self.numbers, self.places = whole, numbers, places

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def codes(self) -> IntArray:  # type: ignore[override]
        """Shape (n,): codes into the table; made when first looked at."""
        codes = self.places[self.numbers].astype(np.int64)
        freeze(codes)
        return codes

    def factorize(self) -> tuple[IntArray, Ids]:
        """Codes that sort as the ids do by bytes, among those that are there, and these."""
        size = len(self.whole)
        there, present = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
        own = np.empty(len(self), dtype=np.int64)
        found = compiled.recode(self.numbers, self.places, there, own, present)
        return own, self.whole if found == size else Part(self.whole, present[:found])


def usable() -> bool:
    """Whether the loops were compiled and are not switched off."""
    return compiled is not None and os.environ.get("FUSION_BENCH_NATIVE") != "0"


def prepared(data: bytes | Text) -> tuple[Text, int]:
    """A file's text without the mark of UTF-8, and how many lines it has.

    Each line ends with a newline and nothing else.
    """
    text = np.frombuffer(data, dtype=np.uint8) if isinstance(data, bytes) else data
    if text[: len(BOM_UTF8)].tobytes() == BOM_UTF8:
        text = text[len(BOM_UTF8) :]
    rows, returns = compiled.lines(text)
    if returns:
        text = np.frombuffer(text.tobytes().replace(b"\r\n", b"\n"), dtype=np.uint8)
    if len(text) and text[-1] != NEWLINE:  # the last line of a file may go without
        text, rows = np.append(text, np.uint8(NEWLINE)), rows + 1
    return text, rows


def regular(text: Text, rows: int, columns: int, value: int, *, whole: bool) -> Regular | None:
    """The columns of a text where every line has so many, one blank or tab between two.

    Args:
        text: Its lines, each with its end.
        rows: How many these are.
        columns: How many cells a line has; the first is the query, the third the document.
        value: Which one is the value.
        whole: The values are whole numbers.

    Returns:
        None where a line is anything else, an id cannot be packed or a value is no number.
    """
    if not 0 < len(text) <= MOST:
        return None
    starts, widths = np.empty(rows, dtype=np.uint32), np.empty(rows, dtype=np.uint8)
    values: FloatArray | IntArray
    values = np.empty(rows, dtype=np.int64) if whole else np.empty(rows, dtype=np.float64)
    # Room for the worst case; what is never written to costs no memory.
    heads, left = np.empty((rows, 3), dtype=np.int64), np.empty((rows, 3), dtype=np.int64)
    found = compiled.split(text, columns, value, starts, widths, values, heads, left)
    if found is None or not _filled(values, text, left[: found[2]]):
        return None
    _, changes, _, widest, wide = found
    head, start, width = heads[:changes].T
    names = Cells(text, start.astype(np.uint32), width.astype(np.uint8), int(width.max()))
    queries = Repeated(names, np.diff(head, append=rows))
    return Regular(queries, Cells(text, starts, widths, widest), values, bool(wide))


def _filled(values: FloatArray | IntArray, text: Text, left: IntArray) -> bool:
    """Whether Python reads the numbers that the loop left to it, which are put in place."""
    cells = (text[start:end].tobytes() for _, start, end in left.tolist())
    try:
        values[left[:, 0]] = [float(cell.decode()) for cell in cells]
    except ValueError:  # one that is no UTF-8 is of this kind, too
        return False
    return True


def all_cells(tables: Sequence[Ids]) -> TypeGuard[Sequence[Cells]]:
    """Whether :func:`code_together` takes these tables."""
    return all(isinstance(ids, Cells) for ids in tables) and sum(map(len, tables)) < MOST


def code_together(tables: Sequence[Cells]) -> list[Numbered]:
    """The same sequences, coded by one table that all of them share."""
    count, rows = max(ids.word_count for ids in tables), sum(map(len, tables))
    numbers = [np.empty(len(ids), dtype=np.int32) for ids in tables]
    given = tuple(
        (table.text, table.starts, table.widths, own)
        for table, own in zip(tables, numbers, strict=True)
    )
    ids = np.empty((rows, count), dtype=np.uint64)
    slots = np.empty(1 << (rows + rows // 4 + 1).bit_length(), dtype=np.uint64)
    distinct = compiled.code(given, ids, slots, count)
    whole, places = _sorted(ids[:distinct])
    return [Numbered(whole, own, places) for own in numbers]


def _sorted(ids: Words) -> tuple[Ids, Int32Array]:
    """Distinct ids, shape (n, W), by bytes, and the place of each among them."""
    keys = np.empty(len(ids), dtype=np.uint64)
    if not compiled.keys(ids, ids.shape[1], keys):
        codes, whole = Ids(np.ascontiguousarray(ids.T)).factorize()
        return whole, codes.astype(np.int32)
    keys.sort()
    places, order = np.empty(len(ids), dtype=np.int32), np.empty(len(ids), dtype=np.int32)
    compiled.ranked(keys, places, order)
    return Ordered(ids, order), places
