"""Azure AI Search: its fusions."""

from fusion_bench.engines.azure.dialect import AzureAISearch

__all__ = ["AzureAISearch"]
