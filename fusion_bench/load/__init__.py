"""Files to records and datasets: one reader a format."""

from fusion_bench.load import json_lines, parquet, tables, trec
from fusion_bench.load.dataset import Dataset, documents_of, load_dataset
from fusion_bench.load.documents import load_documents
from fusion_bench.load.files import load_qrels, load_queries, load_run
from fusion_bench.load.spec import find_dataset, list_datasets

__all__ = [
    "Dataset",
    "documents_of",
    "find_dataset",
    "json_lines",
    "list_datasets",
    "load_dataset",
    "load_documents",
    "load_qrels",
    "load_queries",
    "load_run",
    "parquet",
    "tables",
    "trec",
]
