"""Files to records and datasets: one reader a format."""

from fusion_bench.io import json_lines, parquet, tables, trec
from fusion_bench.io.dataset import Dataset, documents_of, load_dataset
from fusion_bench.io.dataset_config import find_dataset, list_datasets
from fusion_bench.io.documents import load_documents
from fusion_bench.io.files import load_qrels, load_queries, load_run

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
