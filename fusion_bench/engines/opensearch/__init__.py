"""OpenSearch: its fusions."""

from fusion_bench.engines.opensearch.dialect import OpenSearch

__all__ = ["OpenSearch"]
