"""LlamaIndex: its fusions and its connector."""

from fusion_bench.engines.llamaindex.connector import LlamaIndexConnector
from fusion_bench.engines.llamaindex.dialect import LlamaIndex

__all__ = ["LlamaIndex", "LlamaIndexConnector"]
