"""The live pipeline: the lists of one query fused, reranked and blended."""
