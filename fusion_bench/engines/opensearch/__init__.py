"""OpenSearch: its fusions and its connector."""

from fusion_bench.engines.opensearch.connector import OpenSearchConnector
from fusion_bench.engines.opensearch.dialect import OpenSearch

__all__ = ["OpenSearch", "OpenSearchConnector"]
