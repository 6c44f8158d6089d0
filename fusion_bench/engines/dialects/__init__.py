"""Dialects of search engines: one file each, found by name; none of them loads a connector."""

from fusion_bench.experiment.dialect import dialects

dialects.first = ("elasticsearch", "opensearch", "qdrant", "weaviate", "milvus", "pgvector")
#: The documents from which this project started.
dialects.last = FOUNDING_DOCUMENTS = ("adr-005", "conv-07-05", "qmd", "semche")
