"""Measures: their names, their values per query, and what ties could make of them."""

from fusion_bench.measures.compute import evaluate
from fusion_bench.measures.names import Measure, parse_measure
from fusion_bench.measures.ranking import no_relevant
from fusion_bench.measures.ties import TieSensitivity, tie_sensitivity

__all__ = [
    "Measure",
    "TieSensitivity",
    "evaluate",
    "no_relevant",
    "parse_measure",
    "tie_sensitivity",
]
