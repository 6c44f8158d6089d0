"""semche's hybrid retriever over an embedded Chroma: vectors and BM25, fused by rank."""

from fusion_bench.retrieve.hybrid.chroma import ChromaDBError, ChromaDBManager
from fusion_bench.retrieve.hybrid.retriever import HybridRetriever, HybridRetrieverError

__all__ = ["ChromaDBError", "ChromaDBManager", "HybridRetriever", "HybridRetrieverError"]
