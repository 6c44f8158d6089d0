"""Other names of fusion methods, and the parameters that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONVEX: Final = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}

#: Name in lower case → configuration; a parameter that is given replaces the alias's. ``sum`` to
#: ``wsum`` without a prefix are the names of ranx.
ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "anz": {"method": "comb_anz"},
    "borda_fuse": {"method": "borda"},
    "bordafuse": {"method": "borda"},
    "combanz": {"method": "comb_anz"},
    "combgmnz": {"method": "comb_gmnz"},
    "combmax": {"method": "comb_max"},
    "combmed": {"method": "comb_med"},
    "combmin": {"method": "comb_min"},
    "combmnz": {"method": "comb_mnz"},
    "combsum": {"method": "comb_sum"},
    "condorcet_fuse": {"method": "condorcet"},
    "convex": CONVEX,
    "convex_combination": CONVEX,
    "distribution_based_score_fusion": {"method": "dbsf"},
    "gmnz": {"method": "comb_gmnz"},
    "inverse_square_rank": {"method": "isr"},
    "log_odds_conjunction": {"method": "log_odds"},
    "max": {"method": "comb_max"},
    "med": {"method": "comb_med"},
    "min": {"method": "comb_min"},
    "mnz": {"method": "comb_mnz"},
    "rank_biased_centroid": {"method": "rbc"},
    "reciprocal_rank_fusion": {"method": "rrf"},
    "score_max": {"method": "max_score"},
    "sum": {"method": "comb_sum"},
    "w_bordafuse": {"method": "weighted_borda"},
    "w_condorcet": {"method": "weighted_condorcet"},
    "weighted_bordafuse": {"method": "weighted_borda"},
    "wsum": {"method": "weighted_sum"},
}
