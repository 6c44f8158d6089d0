"""LangChain: its fusions and its connector."""

from fusion_bench.engines.langchain.connector import LangChainConnector
from fusion_bench.engines.langchain.dialect import LangChain

__all__ = ["LangChain", "LangChainConnector"]
