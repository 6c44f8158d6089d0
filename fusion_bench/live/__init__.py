"""The live pipeline: rerank the candidates of one query within a deadline."""
