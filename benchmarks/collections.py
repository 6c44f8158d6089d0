"""The collections that studies run on: the real ones and a made one.

All but ``attack`` are outside the repository; FUSION_BENCH_PARITY_DATA names their folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.cases import SIZES, make_case
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.measures import parse_measure
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.space import build_search_space

DATASETS = Path(__file__).parent.parent / "datasets"
ATTACK = DATASETS / "attack" / "dataset.yaml"
MEASURE = parse_measure("nDCG@10")
RRF: Mapping[str, Any] = {"method": "rrf", "k": 60}


@dataclass(frozen=True, eq=False)
class Collection:
    """Lists, judgments and queries.

    Attributes:
        name: Of the collection.
        runs: The lists, with the rerank lists beside them.
        all_lists: The same with the rerank lists as further sources, for tools without blends.
        qrels: The judgments.
        queries: Types, groups and splits.
        spaces: Reranker → what its scores mean.
    """

    name: str
    runs: AlignedRuns
    all_lists: AlignedRuns
    qrels: Qrels
    queries: Mapping[str, Query]
    spaces: Mapping[str, ScoreSpace]


def load_parity_collection(
    name: str,
    sources: tuple[str, ...],
    reranker: tuple[str, ScoreSpace] | None = None,
    *,
    qrels: str = "qrels.txt",
    types: Callable[[Path], Mapping[str, str]] = lambda _: {},
) -> Collection:
    """A collection outside the repository, with some of its lists."""
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / name
    queries = {query: Query(query, type=label) for query, label in types(folder).items()}
    lists = [load_parity_run(name, "runs", source) for source in sources]
    spaces = dict([reranker] if reranker else [])
    rerankers = [load_parity_run(name, "rerank", each) for each in spaces]
    return _align_collection(name, load_qrels(folder / qrels), lists, rerankers, queries, spaces)


def load_parity_run(collection: str, kind: str, name: str) -> Run:
    """A run or a rerank list of a collection of the parity tests."""
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / collection / kind
    read_options = ReadOptions(on_duplicate="best_rank")
    return load_run(folder / f"{name}.trec.gz", name=name, read_options=read_options)


def _align_collection(
    name: str,
    qrels: Qrels,
    lists: Sequence[Run],
    rerankers: Sequence[Run],
    queries: Mapping[str, Query],
    spaces: Mapping[str, ScoreSpace],
) -> Collection:
    runs = align(qrels, lists, rerankers=rerankers, queries=queries)
    all_lists = align(qrels, [*lists, *rerankers], queries=queries)
    return Collection(name, runs, all_lists, qrels, queries, spaces)


def _read_domains(folder: Path) -> Mapping[str, str]:
    topics = json.loads((folder / "topics.json").read_text(encoding="utf-8"))
    return {query: topic["Domain"] for query, topic in topics.items()}


@cache
def load_built_in(name: str, reranker: str | None = None) -> Collection:
    """A collection of the repository, with a reranker or without."""
    data = load_dataset(DATASETS / name / "dataset.yaml", rerankers=[reranker] if reranker else [])
    lists, rerankers = list(data.runs.values()), list(data.rerankers.values())
    return _align_collection(name, data.qrels, lists, rerankers, data.queries, data.spaces)


def load_attack(reranked: bool = True) -> Collection:
    """The built-in collection ``attack``."""
    return load_built_in("attack", "ltr" if reranked else None)


@cache
def make_toy_collection() -> Collection:
    """A made collection on which every study takes a second: two query types, one reranker."""
    case = make_case(SIZES["study"])
    *lists, last = case.runs
    queries = {
        name: Query(name, type=("short", "long")[n % 2], group=f"g{n // 2}")
        for n, name in enumerate(case.qrels.queries)
    }
    reranker = replace(last, name="reranker")
    return _align_collection("toy", case.qrels, lists, [reranker], queries, {"reranker": "logit"})


COLLECTIONS: Mapping[str, Callable[[], Collection]] = {
    "jqara": cache(
        lambda: load_parity_collection(
            "jqara",
            ("bm25", "bge-m3+dense", "japanese-splade-base-v1"),
            ("bge-reranker-v2-m3", "unit"),
        )
    ),
    "codec": cache(
        lambda: load_parity_collection(
            "codec", ("bm25-rm3", "ance"), ("monot5-on-bm25-rm3", "log_prob"), types=_read_domains
        )
    ),
    "trec-dl-2019": cache(
        lambda: load_parity_collection(
            "trec-dl-2019", ("bm25", "splade", "tas-b"), ("rankvicuna-on-splade", "order")
        )
    ),
    "nfcorpus": cache(
        lambda: load_parity_collection("nfcorpus", ("bm25", "minilm"), qrels="qrels/test.trec")
    ),
    "attack": load_attack,
}


def load_collection(name: str) -> Collection:
    """A real collection, or ``toy``."""
    return make_toy_collection() if name == "toy" else COLLECTIONS[name]()


def build_objective(
    collection: Collection,
    sources: tuple[str, ...] | None = None,
    *,
    fusion: Mapping[str, Any] = RRF,
    blend: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> TuningObjective:
    """The objective of tuning on a collection.

    Args:
        collection: Lists and judgments.
        sources: Names of the fused lists; None = all.
        fusion: Of the default system.
        blend: Of the default system; None = none.
        parameters: As ``tune.parameters`` of an experiment; None = all declared ones.
    """
    runs = replace(collection.runs, spaces=collection.spaces)
    system = System.model_validate(
        {
            "name": "default",
            "runs": sources or runs.sources,
            "fusion": fusion,
            "blend": blend or {"method": "none"},
        }
    )
    roles = dict(zip(runs.sources, runs.roles, strict=True))
    space = build_search_space(system, parameters, {name: roles[name] for name in system.runs})
    return TuningObjective(system, runs, MEASURE, space, contents=Fingerprint({}))
