"""Queries with intents and languages, and lists that only some of them read."""

import random

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Condition, Query, Switch
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.ranking.final_lists import rank_queries

NAMES = ("dense", "bm25", "meta", "synergy")
ROLES = {
    "dense": {"question", "semantic"},
    "bm25": {"keyword"},
    "meta": {"notes"},
    "synergy": {"notes"},
}
WHEN: dict[str, Condition] = {
    "meta": {"intent": ("meta",)},
    "synergy": {"intent": ("meta", "synergy"), "language": ("en",)},
}
INTENTS = ("meta", "synergy", "rules", None)
Lists = dict[str, dict[str, dict[str, float]]]


def make_queries() -> dict[str, Query]:
    queries = {}
    for i in range(24):
        language = ("en", "ja")[i % 3 == 0]
        queries[f"q{i:02}"] = Query(
            f"q{i:02}", intent=INTENTS[i % 4], fields={"language": language}
        )
    return queries


def make_lists() -> Lists:
    drawn = random.Random(3)
    documents = [f"d{i:02}" for i in range(14)]
    return {
        name: {
            query: {
                document: round(drawn.uniform(0.1, 9), 3) for document in drawn.sample(documents, 6)
            }
            for query in make_queries()
        }
        for name in NAMES
    }


QUERIES, LISTS = make_queries(), make_lists()
QRELS = Qrels.from_dict({query: {"d03": 1, "d07": 2, "d11": 1} for query in QUERIES})
RERANK = Run.from_dict(
    "ce", {q: {f"d{i:02}": (i * 7 % 14) / 14 for i in range(14)} for q in QUERIES}
)


def is_on(name: str, query: Query) -> bool:
    condition = WHEN.get(name, {})
    values = {"intent": query.intent, "language": query.fields["language"]}
    return all(values[field] in allowed for field, allowed in condition.items())


def make_run(name: str) -> Run:
    run = Run.from_dict(name, LISTS[name], roles=frozenset(ROLES[name]))
    if name not in WHEN:
        return run
    return run.switched(Switch.for_queries(WHEN[name], QUERIES.values()))


def aligned() -> AlignedRuns:
    runs = [make_run(name) for name in NAMES]
    return align(QRELS, runs, rerankers=[RERANK], queries=QUERIES, spaces={"ce": "unit"})


def final_scores(system: System, runs: AlignedRuns) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {query: {} for query in runs.queries}
    for index, ranking in rank_queries(system, runs):
        view = ranking.runs
        for n in (ranking.positions > 0).nonzero()[0].tolist():
            query = runs.queries[index[view.query_index[n]]]
            scores[query][view.vocabulary[view.documents[n]]] = float(ranking.scores[n])
    return scores
