"""Lucene: its fusions."""

from fusion_bench.engines.lucene.dialect import Lucene

__all__ = ["Lucene"]
