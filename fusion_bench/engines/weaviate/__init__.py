"""Weaviate: its fusions and its connector."""

from fusion_bench.engines.weaviate.connector import WeaviateConnector
from fusion_bench.engines.weaviate.dialect import Weaviate

__all__ = ["Weaviate", "WeaviateConnector"]
