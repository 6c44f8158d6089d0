"""Quality against rerank cost."""
