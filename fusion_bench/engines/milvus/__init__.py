"""Milvus: its fusions."""

from fusion_bench.engines.milvus.dialect import Milvus

__all__ = ["Milvus"]
