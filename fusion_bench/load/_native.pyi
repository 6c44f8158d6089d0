import numpy as np
from numpy.typing import NDArray

def lines(text: bytes, /) -> int: ...
def split(
    text: bytes,
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
    text: bytes,
    starts: NDArray[np.uint32],
    widths: NDArray[np.uint8],
    words: NDArray[np.uint64],
    /,
) -> None: ...
def code(
    tables: tuple[tuple[bytes, NDArray[np.uint32], NDArray[np.uint8], NDArray[np.int32]], ...],
    ids: NDArray[np.uint64],
    count: int,
    /,
) -> int: ...
