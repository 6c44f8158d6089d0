import numpy as np
from numpy.typing import NDArray

Source = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]
]

def settled(
    scores: NDArray[np.float64],
    documents: NDArray[np.int64],
    offsets: NDArray[np.int64],
    good: NDArray[np.uint8],
    spacing: float,
    by_document: bool,
    /,
) -> bool: ...
def twice(documents: NDArray[np.int64], offsets: NDArray[np.int64], size: int, /) -> bool: ...
def joined(
    sources: tuple[Source, ...],
    bits: int,
    keys: NDArray[np.int64],
    offsets: NDArray[np.int64],
    /,
) -> int: ...
def counted(offsets: NDArray[np.int64], counts: NDArray[np.int64], /) -> None: ...
