"""Small random collections with ties, unjudged documents and lists that lack queries."""

from dataclasses import dataclass
from random import Random
from typing import Any

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.evaluation.details.report_details import DetailedSet
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.final_lists import make_final_lists
from fusion_bench.ranking.system_scores import evaluate_systems

SOURCES = ("a", "b", "c")
ROLES = {"a": frozenset({"keyword"}), "b": frozenset({"question"}), "c": frozenset({"hyde"})}
QUERIES = tuple(f"q{n}" for n in range(5))
DOCUMENTS = tuple(f"d{n:02}" for n in range(18))
SPACES: dict[str, ScoreSpace] = {"r": "unit"}
MEASURE = parse_measure("nDCG@10")

SYSTEMS: list[dict[str, Any]] = [
    {"runs": ["b"]},
    {"fusion": {"method": "rrf", "k": 3, "weights": {"a": 0.5}}},
    {"fusion": {"method": "weighted_score", "normalize": "min_max"}, "depth": 4, "top_k": 7},
    {
        "fusion": {"method": "rrf_v2"},
        "blend": {"method": "position_aware", "reranker": "r", "depth": 6, "missing": "below"},
    },
    {
        "by_query_type": {
            "local": {"fusion": "comb_max"},
            "hybrid": {
                "fusion": "rrf",
                "blend": {"method": "replace", "reranker": "r", "missing": "zero"},
            },
        }
    },
    {
        "runs": ["inner", "c"],
        "stages": {"inner": {"runs": ["a", "b"], "fusion": "isr", "top_k": 5}},
    },
]


@dataclass(frozen=True)
class Case:
    judged: dict[str, dict[str, int]]
    lists: dict[str, dict[str, dict[str, float]]]
    rerank: dict[str, dict[str, float]]

    @property
    def qrels(self) -> Qrels:
        return Qrels.from_dict(self.judged)

    def align(self, lists: dict[str, dict[str, dict[str, float]]] | None = None) -> AlignedRuns:
        types = {q: Query(q, type="local" if n % 2 else "hybrid") for n, q in enumerate(QUERIES)}
        runs = (self.lists if lists is None else lists).items()
        return align(
            self.qrels,
            [Run.from_dict(name, dict(rows), roles=ROLES[name]) for name, rows in runs],
            rerankers=[Run.from_dict("r", self.rerank)],
            queries=types,
            spaces=SPACES,
        )


def make_case(seed: int) -> Case:
    random = Random(seed)

    def scored(documents: list[str]) -> dict[str, float]:
        return {document: float(random.randint(1, 6)) for document in documents}

    def queries() -> list[str]:
        return ["q0", *random.sample(QUERIES[1:], random.randint(1, 4))]

    def documents() -> list[str]:
        return random.sample(DOCUMENTS, random.randint(1, 13))

    judged = {
        query: {"d00": 1} | {d: random.randint(0, 2) for d in random.sample(DOCUMENTS, 6)}
        for query in QUERIES
    }
    lists = {name: {query: scored(documents()) for query in queries()} for name in SOURCES}
    rerank = {
        query: {d: random.random() for d in random.sample(DOCUMENTS, 12)} for query in QUERIES
    }
    return Case(judged, lists, rerank)


def make_system(config: dict[str, Any]) -> System:
    return System.model_validate({"name": "s", "runs": SOURCES, **config})


def final_lists(system: System, runs: AlignedRuns) -> dict[str, list[str]]:
    lists = make_final_lists(system, runs)
    ranked: dict[str, list[str]] = {query: [] for query in runs.queries}
    for query, document in zip(lists.query_ids, lists.document_ids, strict=True):
        ranked[query].append(document)
    return ranked


def detail(case: Case, *systems: System, runs: AlignedRuns | None = None) -> DetailedSet:
    runs = runs or case.align()
    scores = evaluate_systems(systems, runs, [MEASURE])
    values = {system.name: each.values[0] for system, each in zip(systems, scores, strict=True)}
    return DetailedSet(systems, values, MEASURE, runs.queries, 0.05)
