"""The formulas of a rerank score and of a retrieval term, with their numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fusion_bench.blend import Fused
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace


def rerank_formula(space: ScoreSpace, all_raw: FloatArray, raw: float) -> str:
    """The formula that maps a score of a rerank list to the unit scale.

    Args:
        space: What the list's scores mean.
        all_raw: Shape (n,): those of the query's candidates; NaN = none.
        raw: The document's own; NaN = none.
    """
    if np.isnan(raw):
        return "the list lacks it: 0"
    known = all_raw[~np.isnan(all_raw)]
    return {
        "unit": f"raw {raw:.6g}",
        "logit": f"sigmoid of raw {raw:.6g}",
        "log_prob": f"exp of raw {raw:.6g}",
        "unbounded": f"min-max: {_min_max(raw, known)}",
        "order": f"order: raw {raw:.6g} among {len(known)} candidates",
    }[space]


def retrieval_formula(reading: str, fused: Fused, candidates: NDArray[np.bool_], n: int) -> str:
    """The formula of the retrieval term, from the fused score or the fused rank.

    Args:
        reading: ``fused``, ``fused_max_possible``, ``fused_min_max`` or ``reciprocal_rank``.
        fused: The fused list of one query.
        candidates: Shape (N,): the documents that are blended.
        n: The document.
    """
    score = float(fused.scores[n])
    if reading == "reciprocal_rank":
        return f"{reading}: 1 / {fused.positions[n]}"
    if reading == "fused_min_max":
        return f"{reading}: {_min_max(score, fused.scores[candidates])}"
    if reading == "fused_max_possible":
        return f"{reading}: {score:.6g} / {float(fused.max_possible[0]):.6g}"
    return "the fused score"


def _min_max(value: float, known: FloatArray) -> str:
    low, high = float(known.min()), float(known.max())
    if low == high:
        return f"all candidates have {value:.6g}, which becomes 1"
    return f"({value:.6g} − {low:.6g}) / ({high:.6g} − {low:.6g})"
