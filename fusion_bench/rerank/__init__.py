"""Rerankers: score candidates once, store the scores, write lists for offline evaluation."""
