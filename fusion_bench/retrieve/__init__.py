"""Text in, ranked lists out: the retrievers that make runs.

The bench never imports this package; it reads the files that are written from here. Every index
answers a batch of queries with a matrix of scores, one row a query and one column a document, and
:func:`~fusion_bench.retrieve.common.rank_documents` cuts a row to the list that goes into a run.

The libraries behind the indexes are optional (extra ``collections``) and imported on first use.
"""
