"""LanceDB: its rerankers, and its lists."""

from fusion_bench.engines.lancedb.connector import LanceDBConnector
from fusion_bench.engines.lancedb.dialect import LanceDB

__all__ = ["LanceDB", "LanceDBConnector"]
