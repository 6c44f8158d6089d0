"""Other names of fusion methods, and the parameters that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONVEX: Final = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}
SUM: Final = {"method": "weighted_score", "normalize": "none", "missing": "zero"}

#: Name in lower case → configuration; a parameter that is given replaces the alias's.
#: ``weighted_score`` divides each sum by Σ w, which changes no order.
ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "comb_sum": SUM,
    "combsum": SUM,
    "convex": CONVEX,
    "convex_combination": CONVEX,
    "reciprocal_rank_fusion": {"method": "rrf"},
    "weighted_sum": CONVEX,
    "wsum": CONVEX,
}
