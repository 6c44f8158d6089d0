"""The collections of the leaderboard: those of datasets/, and those of the parity tests.

A parity collection gets a ``dataset.yaml`` in a work folder, beside copies of its files: a dataset
may not read files outside its folder, and the originals are never written to.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.studies.leaderboard.methods import ROOT
from fusion_bench.io.dataset_config import FILE, read_spec
from fusion_bench.util.files import write_atomic

PARITY_DATA = "FUSION_BENCH_PARITY_DATA"
KEYWORD, SEMANTIC, DENSE = ("keyword",), ("semantic",), ("question", "semantic")


@dataclass(frozen=True)
class ParityCollection:
    """Which files of a parity collection take part.

    Attributes:
        folder: Below the folder of the parity data.
        runs: Roles of each source, by the name of its file.
        rerank: Score space of the rerank list, by its file below the folder.
        keys: Further keys of the ``dataset.yaml``.
    """

    folder: str
    runs: Mapping[str, tuple[str, ...]]
    rerank: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)

    def files(self) -> tuple[str, ...]:
        """Paths of all files, below the folder."""
        runs = (f"runs/{name}.trec.gz" for name in self.runs)
        return (str(self.keys.get("qrels", "qrels.txt")), *runs, *self.rerank)

    def write(self, source: Path, folder: Path) -> Path:
        """Copy the files and write the ``dataset.yaml``.

        Args:
            source: Folder of the parity data.
            folder: Where the dataset is written.
        """
        for file in self.files():
            _copy_if_changed(source / self.folder / file, folder / file)
        options = {"on_duplicate": "best_rank"}
        spec = {
            "name": folder.name,
            "qrels": "qrels.txt",
            "runs": {
                name: {"path": f"runs/{name}.trec.gz", "roles": list(roles), **options}
                for name, roles in self.runs.items()
            },
            "rerank": {
                Path(file).name.removesuffix(".trec.gz"): {
                    "path": file,
                    "score_space": space,
                    **options,
                }
                for file, space in self.rerank.items()
            },
            **self.keys,
        }
        path = folder / FILE
        write_atomic(path, yaml.safe_dump(spec, sort_keys=False).encode())
        return path


def _agents(name: str) -> ParityCollection:
    """A collection of Weaviate's agents: the hybrid search, and two efforts of the agent.

    The hybrid search is called the keyword search, so that engines of one such pair take part.
    """
    runs = {"hybrid-search-1": KEYWORD, "effort-high-1": SEMANTIC, "effort-medium-1": SEMANTIC}
    return ParityCollection(f"weaviate-agents/{name}", runs, keys={"judgments": "sparse"})


PARITY_COLLECTIONS: Mapping[str, ParityCollection] = {
    "codec": ParityCollection(
        "codec",
        {"bm25-rm3": KEYWORD, "ance": DENSE},
        {"rerank/monot5-on-bm25-rm3.trec.gz": "log_prob"},
    ),
    "jqara": ParityCollection(
        "jqara",
        {"bm25": KEYWORD, "bge-m3+dense": DENSE, "japanese-splade-base-v1": SEMANTIC},
        {"rerank/bge-reranker-v2-m3.trec.gz": "unit"},
        {"judgments": "complete"},
    ),
    "nfcorpus": ParityCollection(
        "nfcorpus",
        {"bm25": KEYWORD, "minilm": DENSE},
        keys={"qrels": "qrels/test.trec", "judgments": "sparse"},
    ),
    "trec-cast-2021": ParityCollection(
        "trec-cast-2021",
        {"org_manual_bm25": KEYWORD, "org_manual_ance": DENSE, "org_convdr": SEMANTIC},
        {"runs/org_manual_ance_bert.trec.gz": "unbounded"},
    ),
    "trec-covid-round2": ParityCollection(
        "trec-covid-round2",
        {"cord19.vespa.ai-bm25": KEYWORD, "covidex.sim": KEYWORD, "covidex.t5": SEMANTIC},
    ),
    "trec-dl-2019": ParityCollection(
        "trec-dl-2019",
        {"bm25": KEYWORD, "splade": SEMANTIC, "tas-b": DENSE},
        {"rerank/rankvicuna-on-splade.trec.gz": "order"},
        {"binary_relevance": 2},
    ),
    "bright-biology": _agents("bright-biology"),
    "bright-economics": _agents("bright-economics"),
    "bright-robotics": _agents("bright-robotics"),
}


def find_collections(work: Path) -> Iterator[tuple[str, Path]]:
    """Name and ``dataset.yaml`` of each collection with two sources or more.

    Args:
        work: Folder in which the parity collections are written.
    """
    for path in sorted((ROOT / "datasets").glob(f"*/{FILE}")):
        spec, _ = read_spec(path)
        if len(spec.runs) > 1:
            yield spec.name, path
    parity = os.environ.get(PARITY_DATA)
    for name, collection in PARITY_COLLECTIONS.items() if parity else ():
        yield name, collection.write(Path(str(parity)), work / name)


def _copy_if_changed(source: Path, target: Path) -> None:
    """Copy a file unless the copy has its size and time."""
    stamps = [
        (path.stat().st_size, path.stat().st_mtime_ns) for path in (source, target) if path.exists()
    ]
    if len(stamps) == 1 or stamps[0] != stamps[1]:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
