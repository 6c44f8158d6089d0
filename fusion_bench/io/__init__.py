"""Files to records and datasets: one reader a format."""

from fusion_bench.io.dataset import Dataset, documents_of, load_dataset
from fusion_bench.io.dataset_config import find_dataset, list_datasets
from fusion_bench.io.json_objects import load_documents, load_queries
from fusion_bench.io.load_records import load_qrels, load_run

__all__ = [
    "Dataset",
    "documents_of",
    "find_dataset",
    "list_datasets",
    "load_dataset",
    "load_documents",
    "load_qrels",
    "load_queries",
    "load_run",
]
