"""Elasticsearch: its fusions and its connector."""

from fusion_bench.engines.elasticsearch.connector import ElasticsearchConnector
from fusion_bench.engines.elasticsearch.dialect import Elasticsearch

__all__ = ["Elasticsearch", "ElasticsearchConnector"]
