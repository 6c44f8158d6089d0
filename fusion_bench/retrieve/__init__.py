"""Text in, ranked lists out: the retrievers that make runs.

The bench never imports this package; it reads the files that are written from here. Every index
answers a batch of queries with a matrix of scores, one row a query and one column a document, and
:func:`ranked` cuts a row to the list that goes into a run.

The libraries behind the indexes are optional (extra ``collections``) and imported on first use.
"""

from fusion_bench.retrieve.bm25 import BM25Index
from fusion_bench.retrieve.common import Ranking, rank_documents, stem_texts
from fusion_bench.retrieve.dense import DenseIndex, Encoder
from fusion_bench.retrieve.entities import EntityLinker
from fusion_bench.retrieve.graph import Graph, personalized_pagerank

__all__ = [
    "BM25Index",
    "DenseIndex",
    "Encoder",
    "EntityLinker",
    "Graph",
    "Ranking",
    "personalized_pagerank",
    "rank_documents",
    "stem_texts",
]
