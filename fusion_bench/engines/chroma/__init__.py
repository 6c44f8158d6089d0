"""Chroma: its fusions."""

from fusion_bench.engines.chroma.dialect import Chroma

__all__ = ["Chroma"]
