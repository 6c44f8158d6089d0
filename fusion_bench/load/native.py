"""The loops of reading in C, where they were compiled; they find what those in numpy find.

``FUSION_BENCH_NATIVE=0`` switches them off.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.codes import Words
from fusion_bench.ids import BYTES, Coded, Ids, Repeated
from fusion_bench.order import FloatArray, IntArray, freeze

try:
    from fusion_bench.load import _native as compiled
except ImportError:
    compiled = None  # type: ignore[assignment] # it was not compiled

__all__ = ["Cells", "Regular", "all_cells", "code_together", "regular", "usable"]

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
        self, text: bytes, starts: NDArray[np.uint32], widths: NDArray[np.uint8], widest: int
    ) -> None:
        self.text, self.starts, self.widths, self.widest = text, starts, widths, widest
        freeze(starts)
        freeze(widths)

    @cached_property
    def words(self) -> Words:  # type: ignore[override]
        """Shape (W, n): word w of each id; read-only."""
        words = np.empty((len(self), self.count), dtype=np.uint64)
        compiled.pack(self.text, self.starts, self.widths, words)
        words = np.ascontiguousarray(words.T)
        freeze(words)
        return words

    @property
    def count(self) -> int:
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
        return self.text[start : start + int(self.widths[index])].decode()

    def factorize(self) -> tuple[IntArray, Ids]:
        """Codes that sort as the ids do by bytes, and the distinct ids in that order."""
        (coded,) = code_together([self])
        return coded.codes, coded.whole


def usable() -> bool:
    """Whether the loops were compiled and are not switched off."""
    return compiled is not None and os.environ.get("FUSION_BENCH_NATIVE") != "0"


def regular(text: bytes, columns: int, value: int, *, whole: bool) -> Regular | None:
    """The columns of a text where every line has so many, one blank or tab between two.

    Args:
        text: Its lines.
        columns: How many cells a line has; the first is the query, the third the document.
        value: Which one is the value.
        whole: The values are whole numbers.

    Returns:
        None where a line is anything else, an id cannot be packed or a value is no number.
    """
    if not text or len(text) > MOST:
        return None
    if not text.endswith(b"\n"):  # the last line of a file may go without
        text += b"\n"
    rows = compiled.lines(text)
    starts, widths = np.empty(rows, dtype=np.uint32), np.empty(rows, dtype=np.uint8)
    values = np.empty(rows, dtype=np.int64 if whole else np.float64)
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


def _filled(values: FloatArray | IntArray, text: bytes, left: IntArray) -> bool:
    """Whether Python reads the numbers that the loop left to it, which are put in place."""
    try:
        values[left[:, 0]] = [float(text[start:end].decode()) for _, start, end in left.tolist()]
    except ValueError:  # one that is no UTF-8 is of this kind, too
        return False
    return True


def all_cells(tables: Sequence[Ids]) -> TypeGuard[Sequence[Cells]]:
    """Whether :func:`code_together` takes these tables."""
    return all(isinstance(ids, Cells) for ids in tables) and sum(map(len, tables)) < MOST


def code_together(tables: Sequence[Cells]) -> list[Coded]:
    """The same sequences, coded by one table that all of them share."""
    count = max(ids.count for ids in tables)
    codes = [np.empty(len(ids), dtype=np.int32) for ids in tables]
    ids = np.empty((sum(map(len, tables)), count), dtype=np.uint64)
    given = tuple(
        (table.text, table.starts, table.widths, own)
        for table, own in zip(tables, codes, strict=True)
    )
    distinct = compiled.code(given, ids, count)
    places, whole = Ids(np.ascontiguousarray(ids[:distinct].T)).factorize()
    return [Coded(whole, places[own]) for own in codes]
