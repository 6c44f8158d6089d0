"""Weaviate: its fusions."""

from fusion_bench.engines.weaviate.dialect import Weaviate

__all__ = ["Weaviate"]
