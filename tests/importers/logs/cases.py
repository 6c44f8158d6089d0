"""Logs written as production would write them, from lists that the bench ranked."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import query_of_rows
from fusion_bench.data.qrels import Qrels
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.ranking.final_lists import FinalLists
from fusion_bench.schema import SearchResult, SearchWeights

ATTACK = Path(__file__).parents[3] / "datasets/attack/dataset.yaml"
#: Lists of the built-in collection, by strategy.
SOURCES = {"keyword": "bm25", "semantic": "dense", "graph": "graph"}
WEIGHTS = SearchWeights(keyword=0.35, semantic=0.35, graph=0.30)


def make_system(**changes: Any) -> System:  # noqa: ANN401 - keys of a system
    """Production, over lists short enough that one page holds all that they return."""
    weights = {SOURCES[name]: weight for name, weight in WEIGHTS.model_dump().items()}
    fusion = {"method": "rrf", "k": 60, "normalize": "three_lists", "weights": weights}
    return System("production", list(SOURCES.values()), fusion, depth=30, **changes)


@cache
def load_attack(queries: int) -> tuple[Qrels, AlignedRuns]:
    """Judgments and lists of the first queries of the built-in collection."""
    dataset = load_dataset(ATTACK)
    runs = dataset.aligned(list(SOURCES.values()), ties="first_seen")
    return dataset.qrels, runs.subset(np.arange(len(runs.queries)) < queries)


def log_lists(
    lists: FinalLists, reranker: str | None = None, options: Mapping[str, Any] | None = None
) -> list[str]:
    """One line a query: scores between 0 and 1, as production normalizes them."""
    query_of_row = query_of_rows(lists.offsets)
    lines = []
    for q, query in enumerate(lists.queries):
        rows = np.flatnonzero(query_of_row == q)
        scores = {
            name: _scale(lists.source_scores[lists.sources.index(source), rows])
            for name, source in SOURCES.items()
        }
        rerank = None
        if reranker is not None:
            raw = lists.source_scores[lists.sources.index(reranker), rows]
            rerank = [None if np.isnan(x) else float(x) for x in 1 / (1 + np.exp(-raw))]
        lines.append(_log_query(query, lists, rows, scores, rerank, options or {}))
    return lines


def _scale(scores: Any) -> list[float]:  # noqa: ANN401 - an array
    known = scores[~np.isnan(scores)]
    assert (known > 0).all()
    return [float(x) for x in np.nan_to_num(scores) / (known.max() if len(known) else 1)]


def _log_query(
    query: str,
    lists: FinalLists,
    rows: Any,  # noqa: ANN401 - an array
    scores: Mapping[str, list[float]],
    rerank: list[float | None] | None,
    options: Mapping[str, Any],
) -> str:
    documents = lists.document_ids
    final = [float(score) for score in lists.scores[rows]]
    items = [
        {
            "id": documents[row],
            "type": "chunk",
            "score": min(1.0, max(0.0, final[n])),
            "relevance": {
                "combined": min(1.0, max(0.0, final[n])),
                **{name: values[n] for name, values in scores.items()},
                "rerank": None if rerank is None else rerank[n],
            },
            "content": {"text": f"text of {documents[row]}"},
            "highlights": [],
            "sources": {"chunkId": documents[row], "entityIds": [], "relationIds": []},
        }
        for n, row in enumerate(rows)
    ]
    metric = {"enabled": True, "resultCount": 30, "processingTime": 1.0, "topScore": 1.0}
    record = {
        "query": {
            "text": f"text of {query}",
            "type": "local",
            "filters": {"minRelevance": 0.0},
            "options": {"limit": 100, "weights": WEIGHTS.model_dump(), **options},
        },
        "results": items,
        "totalCount": len(items),
        "processingTime": 3.5,
        "strategies": dict.fromkeys(SOURCES, metric),
    }
    return SearchResult.from_json(json.dumps(record)).to_json()
