"""The collections on which rules of choice are tried: two scored lists each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.collections import load_parity_run, make_toy_collection
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.grouped_rows import encode_ids
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_splits import split_queries
from fusion_bench.data.run import Run
from fusion_bench.evaluation.in_memory import make_dataset
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.load_records import load_qrels

ROOT: Final = Path(__file__).parents[3]
PARITY_DATA: Final = "FUSION_BENCH_PARITY_DATA"
#: Collection of the repository → its two lists.
BUILT_IN: Final[Mapping[str, tuple[str, str]]] = {
    "attack": ("bm25", "dense"),
    "referee": ("bm25", "question"),
}


@dataclass(frozen=True)
class PairFiles:
    """Where the lists of a collection outside the repository are.

    Attributes:
        runs: Their names.
        folder: Theirs, below the collection's.
        qrels: The judgments, below the collection's folder.
    """

    runs: tuple[str, str]
    folder: str = "runs"
    qrels: str = "qrels.txt"


#: Lists whose scores are ranks written as scores take no part.
PARITY: Final[Mapping[str, PairFiles]] = {
    "codec": PairFiles(("monot5-on-bm25", "monot5-on-ance"), folder="rerank"),
    "jqara": PairFiles(("bm25", "bge-m3+dense")),
    "nfcorpus": PairFiles(("bm25", "minilm"), qrels="qrels/test.trec"),
    "trec-cast-2021": PairFiles(("org_manual_bm25", "org_manual_ance_bert")),
    "trec-covid-round2": PairFiles(("cord19.vespa.ai-bm25", "covidex.sim")),
    "trec-dl-2019": PairFiles(("bm25", "tas-b")),
}


@dataclass(frozen=True, eq=False)
class ListPair:
    """A collection with two lists.

    Attributes:
        name: Of the collection.
        runs: The two lists, on the queries that take part.
        dataset: As ``fusion-bench tune`` reads it, with the groups that it finds by itself.
    """

    name: str
    runs: AlignedRuns
    dataset: Dataset


def pair_names() -> list[str]:
    """The collections at hand."""
    return [*BUILT_IN, *(PARITY if os.environ.get(PARITY_DATA) else ())]


def load_pair(name: str) -> ListPair:
    """A collection, or ``toy``: a made one."""
    if name == "toy":
        made = make_toy_collection()
        lists = (_extract_run(made.runs, source) for source in made.runs.sources[:2])
        return _make_pair(name, made.qrels, [*lists])
    if name in BUILT_IN:
        folder = ROOT / "datasets" / name
        dataset = load_dataset(folder / "dataset.yaml", runs=BUILT_IN[name], rerankers=())
        return _align_pair(name, dataset)
    files = PARITY[name]
    qrels = load_qrels(Path(os.environ[PARITY_DATA]) / name / files.qrels)
    return _make_pair(name, qrels, [load_parity_run(name, files.folder, r) for r in files.runs])


def _make_pair(name: str, qrels: Qrels, lists: list[Run]) -> ListPair:
    return _align_pair(name, make_dataset(name, qrels, {run.name: run for run in lists}))


def _align_pair(name: str, dataset: Dataset) -> ListPair:
    """The collection without queries that no part of its split has."""
    runs = align(dataset.qrels, [*dataset.runs.values()], queries=dataset.queries)
    split = split_queries(
        runs, dataset.queries, split_seed=TuneSettings(system="default").split_seed
    )
    return ListPair(name, runs.subset(split.tune | split.held_out), dataset)


def _extract_run(runs: AlignedRuns, source: str) -> Run:
    [row] = runs.rows([source])
    kept = np.flatnonzero(runs.ranks[row])
    queries = [runs.queries[q] for q in runs.query_index[kept].tolist()]
    documents = [runs.vocabulary[code] for code in runs.documents[kept].tolist()]
    return Run.from_rows(source, queries, documents, runs.scores[row, kept])


def drop_candidates(runs: AlignedRuns) -> AlignedRuns:
    """The queries with their groups and types alone: values are looked up, not computed."""
    values = ((item.name, getattr(runs, item.name)) for item in fields(runs))
    empty: Any = {name: each[..., :0] for name, each in values if isinstance(each, np.ndarray)}
    offsets = np.zeros(len(runs.queries) + 1, dtype=np.int64)
    empty |= {"offsets": offsets, "ideal_offsets": offsets}
    return replace(runs, **empty, vocabulary=encode_ids([]).vocabulary, qrels=None, switches=())
