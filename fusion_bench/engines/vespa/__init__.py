"""Vespa: its fusions."""

from fusion_bench.engines.vespa.dialect import Vespa

__all__ = ["Vespa"]
