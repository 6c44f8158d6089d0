import numpy as np
from numpy.typing import NDArray

def count(
    tables: tuple[NDArray[np.float32], ...],
    codes: tuple[NDArray[np.int32], ...],
    starts: NDArray[np.int64],
    lower: NDArray[np.float32],
    upper: NDArray[np.float32],
    above: NDArray[np.int64],
    pairs: NDArray[np.int64],
    between: NDArray[np.uint8],
    lanes: int,
    /,
) -> int: ...
