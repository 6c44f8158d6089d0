"""Milvus: its fusions and its connector."""

from fusion_bench.engines.milvus.connector import MilvusConnector
from fusion_bench.engines.milvus.dialect import Milvus

__all__ = ["Milvus", "MilvusConnector"]
