"""Chroma: its fusions and its connector."""

from fusion_bench.engines.chroma.connector import ChromaConnector
from fusion_bench.engines.chroma.dialect import Chroma

__all__ = ["Chroma", "ChromaConnector"]
