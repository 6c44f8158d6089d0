import numpy as np
from numpy.typing import NDArray

Text = bytes | NDArray[np.uint8]

def lines(text: Text, /) -> tuple[int, int]: ...
def split(
    text: Text,
    columns: int,
    value: int,
    starts: NDArray[np.uint32],
    widths: NDArray[np.uint8],
    values: NDArray[np.float64] | NDArray[np.int64],
    heads: NDArray[np.int64],
    left: NDArray[np.int64],
    /,
) -> tuple[int, int, int, int, int] | None: ...
def pack(
    text: Text,
    starts: NDArray[np.uint32],
    widths: NDArray[np.uint8],
    words: NDArray[np.uint64],
    /,
) -> None: ...
def code(
    tables: tuple[tuple[Text, NDArray[np.uint32], NDArray[np.uint8], NDArray[np.int32]], ...],
    ids: NDArray[np.uint64],
    slots: NDArray[np.uint64],
    count: int,
    /,
) -> int: ...
def keys(ids: NDArray[np.uint64], count: int, keys: NDArray[np.uint64], /) -> bool: ...
def ranked(
    keys: NDArray[np.uint64], places: NDArray[np.int32], order: NDArray[np.int32], /
) -> None: ...
def recode(
    codes: NDArray[np.int32],
    places: NDArray[np.int32],
    there: NDArray[np.int32],
    own: NDArray[np.int64],
    present: NDArray[np.int64],
    /,
) -> int: ...
