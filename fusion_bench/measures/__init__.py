"""Measures: one file each, found by name; their values per query, and how ties change them."""

from fusion_bench.measures._base import BinaryMeasure, Measure, list_distributions, measure_classes
from fusion_bench.measures.names import parse_measure
from fusion_bench.measures.query_values import TieSensitivity, compute_measures, tie_sensitivity
from fusion_bench.measures.rankings import (
    Ranking,
    ReturnedDocuments,
    TiedLists,
    collect_returned,
    no_relevant,
)

__all__ = [
    "BinaryMeasure",
    "Measure",
    "Ranking",
    "ReturnedDocuments",
    "TieSensitivity",
    "TiedLists",
    "collect_returned",
    "compute_measures",
    "list_distributions",
    "measure_classes",
    "no_relevant",
    "parse_measure",
    "tie_sensitivity",
]
