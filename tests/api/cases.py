"""Lists small enough to look at, and lists large enough to be split and tuned."""

import random
from typing import TypeAlias

Judgments: TypeAlias = dict[str, dict[str, int]]
Lists: TypeAlias = dict[str, dict[str, float]]

QRELS: Judgments = {"q1": {"d1": 1}, "q2": {"d3": 1, "d1": 0}}
BM25: Lists = {"q1": {"d2": 9.1, "d1": 7.4}, "q2": {"d2": 5.0, "d3": 1.0}}
DENSE: Lists = {"q1": {"d1": 0.8, "d3": 0.7}, "q2": {"d3": 0.9, "d1": 0.2}}
RUNS = {"bm25": BM25, "dense": DENSE}


def make_collection(queries: int = 40) -> tuple[Judgments, dict[str, Lists]]:
    chance = random.Random(1)
    pool = [f"d{i}" for i in range(60)]
    qrels = {
        f"q{i}": {d: chance.choice([0, 1, 2]) for d in chance.sample(pool, 8)}
        for i in range(queries)
    }

    def make_run(noise: float) -> Lists:
        return {
            query: {d: grades.get(d, 0) + chance.gauss(0, noise) for d in chance.sample(pool, 30)}
            for query, grades in qrels.items()
        }

    return qrels, {"bm25": make_run(1.5), "dense": make_run(1.0)}
