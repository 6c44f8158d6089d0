"""The live pipeline: one query's lists → fused, reranked and blended results, as ``eval`` does."""
