"""Lists and systems that the tests of every dialect share."""

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from fusion_bench.config.query_types import UNSURE
from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.system import System
from fusion_bench.ranking.system_ranking import rank_candidates

#: Source → query → document → score.
Lists = Mapping[str, Mapping[str, Mapping[str, float]]]
ROLES = {
    "bm25": frozenset({"keyword"}),
    "dense": frozenset({"question", "semantic"}),
    "hyde": frozenset({"hyde"}),
}
#: A list of one document, or of equal scores, counts 0 in the one and 1 in the other.
BY_SOURCE = {
    "method": "by_source",
    "sources": {
        "dense": {"method": "min_max", "constant": 1},
        "bm25": {"method": "min_max", "constant": 0},
    },
}
DOCUMENTS = [f"d{n}" for n in range(12)]
QUERIES = ("q1", "q2", "q3")


def align_lists(
    lists: Lists, roles: Mapping[str, frozenset[str]] | None = None, ties: Ties = "trec"
) -> AlignedRuns:
    """The lists on judged queries; each source returns something for one more query, ``common``."""
    roles = roles or ROLES
    padded = {name: {**run, "shared by all": {"d0": 1.0}} for name, run in lists.items()}
    queries = {query for run in padded.values() for query in run}
    return align(
        Qrels.from_dict({query: {"d0": 1} for query in sorted(queries)}),
        [
            Run.from_dict(name, dict(run), roles=roles.get(name, frozenset()))
            for name, run in padded.items()
        ],
        ties=ties,
    )


def scores(
    system: System, lists: Lists, query: str = "q", ties: Ties | None = None
) -> dict[str, float]:
    """Document → fused score, best first, of one query of the lists."""
    return ranked_lists(system, align_lists(lists, ties=ties or "trec"))[query]


def ranked_lists(system: System, runs: AlignedRuns) -> dict[str, dict[str, float]]:
    """Query → document → the score that decides the order, best first, cut at ``top_k``."""
    plain = system if system.query_classes is None else system.of_class(UNSURE)
    ranking = rank_candidates(plain, runs)
    view = ranking.runs
    out: dict[str, dict[str, float]] = {}
    for q, query in enumerate(view.queries):
        rows = np.arange(view.offsets[q], view.offsets[q + 1])
        rows = rows[ranking.positions[rows] > 0]
        rows = rows[np.argsort(ranking.positions[rows])]
        out[query] = {
            view.vocabulary[view.documents[n]]: float(ranking.sort_scores[n]) for n in rows
        }
    return out


def random_lists(
    seed: int, *, sources: Sequence[str] = tuple(ROLES), longest: int = 12, most: float = 7.5
) -> Lists:
    """Lists of 1 to ``longest`` documents, some of equal scores, some empty.

    Scores are in (0, most], but for every fifth seed below 0.
    """
    random = Random(seed)
    least = -2.0 if seed % 5 == 0 and most > 1 else 0.0
    lists = {}
    for name in sources:
        lists[name] = {
            query: {
                document: least
                + most * random.choice([random.randint(1, 30) / 30, random.random()])
                for document in random.sample(DOCUMENTS, random.randint(1, longest))
            }
            for query in QUERIES
            if random.random() < 0.9
        }
    return lists


def random_system(seed: int) -> System:
    random = Random(seed)
    sources = random.choice([["bm25", "dense"], ["dense", "bm25"], ["bm25", "dense", "hyde"]])
    weights: dict[str, float] = random.choice(
        [
            {name: random.choice([0.25, 0.5, 0.5, 1.0, 2.0]) for name in sources},
            {},
            {},
            {"bm25": 0.0},
            {"bm25": 0.3, "dense": 0.7},
            {"semantic": 2.0},
            {"bm25": 2.0, "semantic": 2.0},
        ]
    )
    fusion: dict[str, Any] = random.choice(
        [
            {"method": "rrf", "k": random.choice([60, 59, 1, 0, 2, 10, 60.5])},
            {"method": "rrf", "k": {"bm25": random.choice([10, 60, 120])}},
            {"method": "rrf", "k": 59},
            {"method": "rrf", "normalize": "three_lists"},
            {"method": "rrf", "normalize": "max_possible"},
            {"method": "rrf_v2"},
            {"method": "rrf_v2", "bonus": {}},
            {
                "method": "weighted_score",
                "normalize": random.choice(["none", "min_max", "l2", "z_score", "max", "dbsf"]),
                "missing": random.choice(["zero", "zero", "skip", "min"]),
            },
            {"method": "weighted_sum", "normalize": random.choice(["none", "min_max", BY_SOURCE])},
            {"method": "dbsf", "clip": random.random() < 0.3},
            {"method": "comb_sum", "normalize": random.choice(["none", "min_max"])},
            {"method": "comb_max", "normalize": random.choice(["none", "min_max"])},
        ]
    )
    if not fusion["method"].startswith("comb"):
        fusion["weights"] = weights
    settings: dict[str, Any] = {
        "depth": random.choice([None, None, 3, 5, {"bm25": 2}, {"bm25": 2, "dense": 4}]),
        "top_k": random.choice([None, 2, 5]),
        "fusion": fusion,
    }
    if random.random() < 0.1:
        settings["min_relevance"] = 0.02
    if random.random() < 0.1:
        settings["by_query_type"] = {UNSURE: {"fusion": {"method": "rrf", "k": 5}}, "local": {}}
    return System("s", sources, **settings)


def assert_same_order(
    dialect: type[Dialect], ours: System, theirs: System, runs: AlignedRuns
) -> None:
    close = 1e-6 if dialect.precision == "float32" else 1e-11
    uncut = [ranked_lists(s.model_copy(update={"top_k": None}), runs) for s in (ours, theirs)]
    orders = [ranked_lists(system, runs) for system in (ours, theirs)]
    for query, order in orders[0].items():
        other = orders[1][query]
        assert len(order) == len(other), (query, order, other)
        for a, b in zip(order, other, strict=True):
            ties = [
                math.isclose(lists[query][a], lists[query][b], rel_tol=close, abs_tol=1e-12)
                for lists in uncut
            ]
            assert a == b or any(ties), (query, a, b, order, other)
