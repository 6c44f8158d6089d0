"""Other names of fusion methods, and the parameters that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONVEX: Final = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}
SUM: Final = {"method": "weighted_score", "normalize": "none", "missing": "zero"}

#: Name in lower case → configuration; a parameter that is given replaces the alias's.
#: ``weighted_score`` divides each sum by Σ w, which changes no order.
ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "borda_fuse": {"method": "borda"},
    "bordafuse": {"method": "borda"},
    "comb_sum": SUM,
    "combsum": SUM,
    "condorcet_fuse": {"method": "condorcet"},
    "convex": CONVEX,
    "convex_combination": CONVEX,
    "inverse_square_rank": {"method": "isr"},
    "rank_biased_centroid": {"method": "rbc"},
    "reciprocal_rank_fusion": {"method": "rrf"},
    "w_bordafuse": {"method": "weighted_borda"},
    "w_condorcet": {"method": "weighted_condorcet"},
    "weighted_bordafuse": {"method": "weighted_borda"},
    "weighted_sum": CONVEX,
    "wsum": CONVEX,
}
