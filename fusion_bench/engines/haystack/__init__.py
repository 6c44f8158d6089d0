"""Haystack: its fusions and its connector."""

from fusion_bench.engines.haystack.connector import HaystackConnector
from fusion_bench.engines.haystack.dialect import Haystack

__all__ = ["Haystack", "HaystackConnector"]
