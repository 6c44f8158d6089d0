"""LanceDB: its rerankers."""

from fusion_bench.engines.lancedb.dialect import LanceDB

__all__ = ["LanceDB"]
