"""Azure AI Search: its fusions and its connector."""

from fusion_bench.engines.azure.connector import AzureConnector
from fusion_bench.engines.azure.dialect import AzureAISearch

__all__ = ["AzureAISearch", "AzureConnector"]
