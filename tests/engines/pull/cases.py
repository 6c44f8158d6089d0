"""A small pull over the functions of tests.engines.pull.functions."""

from pathlib import Path
from typing import Any

from fusion_bench.config.options import list_options
from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull import PulledDataset, pull_dataset

MODULE = "tests.engines.pull.functions"
KEYWORD = {"function": f"{MODULE}:keyword", "roles": ["keyword"]}
DENSE = {
    "function": f"{MODULE}:dense",
    "form": "vector",
    "distance": True,
    "vectors": f"{MODULE}:embed",
}
QUERIES = '{"_id": "q1", "text": "alpha one", "type": "local"}\n{"id": "q2", "text": "two"}\n'


def write_queries(folder: Path, text: str = QUERIES) -> Path:
    path = folder / "asked.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def pull(folder: Path, legs: dict[str, Any], *, text: str = QUERIES, **given: Any) -> PulledDataset:  # noqa: ANN401 - of two kinds
    """Pull into ``mine`` of a folder; options of the pull, all others are the connector's."""
    names = {each.name for each in list_options(PullOptions)} & given.keys()
    options = {name: given.pop(name) for name in names}
    connector = build_connector("python", {"legs": legs, "wait": 0, **given})
    queries = write_queries(folder, text)
    return pull_dataset(connector, queries, PullOptions(out=folder / "mine", **options))
