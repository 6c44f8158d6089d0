"""Qdrant: its fusions."""

from fusion_bench.engines.qdrant.dialect import Qdrant

__all__ = ["Qdrant"]
