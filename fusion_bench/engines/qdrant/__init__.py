"""Qdrant: its fusions and its connector."""

from fusion_bench.engines.qdrant.connector import QdrantConnector
from fusion_bench.engines.qdrant.dialect import Qdrant

__all__ = ["Qdrant", "QdrantConnector"]
