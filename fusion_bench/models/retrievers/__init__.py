"""Ways to retrieve, one file each: texts in, one ranked list a query out.

The bench never imports this package; it reads the files that are written from here. Every index
answers a batch of queries with a matrix of scores, one row a query and one column a document, and
:func:`~fusion_bench.models.retrieval.rank_documents` cuts a row to the list that goes into a run.

The libraries behind the indexes are optional (extra ``collections``) and imported on first use.
"""
