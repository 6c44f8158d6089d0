"""Elasticsearch: its fusions."""

from fusion_bench.engines.elasticsearch.dialect import Elasticsearch

__all__ = ["Elasticsearch"]
