"""Measures: one file each, found by name; their values per query, and how ties change them."""

from fusion_bench.measures._base import BinaryMeasure, Measure, list_distributions, measure_classes
from fusion_bench.measures.compute import compute_measures
from fusion_bench.measures.names import parse_measure
from fusion_bench.measures.rankings.ranking import Ranking, no_relevant
from fusion_bench.measures.rankings.returned_documents import ReturnedDocuments, collect_returned
from fusion_bench.measures.rankings.tied_lists import TiedLists
from fusion_bench.measures.ties import TieSensitivity, tie_sensitivity

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
