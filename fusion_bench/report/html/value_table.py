"""Values of many systems by query, each distinct value written once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def encode_values(rows: Sequence[Sequence[float | None]]) -> dict[str, Any]:
    """``{"distinct": [value, …], "rows": [[index or -1, …], …]}``; -1 = no value.

    A value of a ranking measure comes again and again, so that this is a third of the values
    themselves; each is written with all its digits.

    Args:
        rows: Values by query, a row each; None or NaN = no value.
    """
    values = np.array(rows, dtype=np.float64)
    distinct, indices = np.unique(values, return_inverse=True)
    known = np.isfinite(distinct)
    # NaN sorts last, so the indices of what is known stay.
    numbered = np.where(known, np.arange(len(distinct)), -1)[indices.reshape(values.shape)]
    return {"distinct": distinct[known].tolist(), "rows": numbered.tolist()}
