"""The real collections that tuning is measured on, each with the system that is the default.

All but ``attack`` stand outside the repository; FUSION_BENCH_PARITY_DATA says where.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fusion_bench.data.aligned_runs import AlignedRuns, align
from fusion_bench.data.records import Qrels, Query, ReadOptions, Run, ScoreSpace
from fusion_bench.experiment.system import System
from fusion_bench.io import load_dataset, load_qrels, load_run
from fusion_bench.measures import parse_measure
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.search_space import build_search_space

__all__ = ["ATTACK", "COLLECTIONS", "Collection", "problem"]

ATTACK = Path(__file__).parent.parent / "datasets" / "attack" / "dataset.yaml"
MEASURE = parse_measure("nDCG@10")
RRF: Mapping[str, Any] = {"method": "rrf", "k": 60}


@dataclass(frozen=True, eq=False)
class Collection:
    """Lists, judgements and what is known of the queries.

    Attributes:
        name: Of the collection.
        runs: The lists, with the rerank list beside them.
        all_lists: The same with the rerank list as one more source, for tools without blends.
        qrels: The judgements.
        queries: Types, groups and splits.
        spaces: What the rerank scores mean.
    """

    name: str
    runs: AlignedRuns
    all_lists: AlignedRuns
    qrels: Qrels
    queries: Mapping[str, Query]
    spaces: Mapping[str, ScoreSpace]


def _outside(
    name: str,
    sources: tuple[str, ...],
    reranker: tuple[str, ScoreSpace] | None = None,
    *,
    qrels: str = "qrels.txt",
    types: Callable[[Path], Mapping[str, str]] = lambda _: {},
) -> Collection:
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / name
    reading = ReadOptions(on_duplicate="best_rank")
    judged = load_qrels(folder / qrels)
    known = {query: Query(query, type=own) for query, own in types(folder).items()}
    lists = [
        load_run(folder / "runs" / f"{source}.trec.gz", name=source, reading=reading)
        for source in sources
    ]
    rerankers, spaces = [], {}
    if reranker is not None:
        path = folder / "rerank" / f"{reranker[0]}.trec.gz"
        rerankers = [load_run(path, name=reranker[0], reading=reading)]
        spaces = {reranker[0]: reranker[1]}
    return _aligned(name, judged, lists, rerankers, known, spaces)


def _aligned(
    name: str,
    judged: Qrels,
    lists: list[Run],
    rerankers: list[Run],
    known: Mapping[str, Query],
    spaces: Mapping[str, ScoreSpace],
) -> Collection:
    runs = align(judged, lists, rerankers=rerankers, queries=known)
    return Collection(
        name, runs, align(judged, [*lists, *rerankers], queries=known), judged, known, spaces
    )


def _domains(folder: Path) -> Mapping[str, str]:
    topics = json.loads((folder / "topics.json").read_text(encoding="utf-8"))
    return {query: topic["Domain"] for query, topic in topics.items()}


@cache
def attack(reranked: bool = True) -> Collection:
    """The built-in collection, with its reranker or without."""
    found = load_dataset(ATTACK, rerankers={"ltr"} if reranked else set())
    lists, rerankers = list(found.runs.values()), list(found.rerankers.values())
    return _aligned("attack", found.qrels, lists, rerankers, found.queries, found.spaces)


COLLECTIONS: Mapping[str, Callable[[], Collection]] = {
    "jqara": cache(
        lambda: _outside(
            "jqara",
            ("bm25", "bge-m3+dense", "japanese-splade-base-v1"),
            ("bge-reranker-v2-m3", "unit"),
        )
    ),
    "codec": cache(
        lambda: _outside(
            "codec", ("bm25-rm3", "ance"), ("monot5-on-bm25-rm3", "log_prob"), types=_domains
        )
    ),
    "trec-dl-2019": cache(
        lambda: _outside(
            "trec-dl-2019", ("bm25", "splade", "tas-b"), ("rankvicuna-on-splade", "order")
        )
    ),
    "nfcorpus": cache(lambda: _outside("nfcorpus", ("bm25", "minilm"), qrels="qrels/test.trec")),
    "attack": attack,
}


def problem(
    collection: Collection,
    sources: tuple[str, ...] | None = None,
    *,
    fusion: Mapping[str, Any] = RRF,
    blend: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> TuningObjective:
    """What is tuned on a collection.

    Args:
        collection: Where.
        sources: Which lists; all by default.
        fusion: The default's.
        blend: The default's; none by default.
        parameters: As ``tune.parameters`` of an experiment; everything declared by default.
    """
    runs = collection.runs
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
    return TuningObjective(system, runs, MEASURE, space, collection.spaces, collection.qrels)
