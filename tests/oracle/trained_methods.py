"""The slow obvious loop of trained fusions: one query, one rank, one document at a time.

Written from the formulas, not from the package: nothing here imports it. A list is its documents,
best first; ``grades`` has no entry for an unjudged document.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Lists: TypeAlias = Mapping[str, Sequence[str]]  # query → documents
Grades: TypeAlias = Mapping[str, Mapping[str, int]]
#: What a list of n documents gives the one at a position (from 1; None = it is not in the list).
Score: TypeAlias = Callable[[int | None, int], float]


def relevant(grades: Grades, query: str, document: str, least: int) -> bool:
    return grades[query].get(document, 0) >= least


def share(
    query: str, segment: Sequence[str], grades: Grades, least: int, judged_only: bool
) -> float:
    counted = [d for d in segment if not judged_only or d in grades[query]]
    hits = [d for d in counted if relevant(grades, query, d, least)]
    return len(hits) / len(counted) if counted else 0.0


def prob_fuse(lists: Lists, grades: Grades, least: int, config: Mapping[str, Any]) -> Score:
    x: int = config["segments"]
    skip = config.get("unjudged") == "skip"

    def probability(k: int) -> float:
        total = 0.0
        for query in grades:
            ranked = lists.get(query, ())
            size = math.ceil(len(ranked) / x)
            total += share(
                query, ranked[(k - 1) * size : k * size], grades, least, judged_only=skip
            )
        return total / len(grades)

    def score(position: int | None, n: int) -> float:
        if position is None:
            return 0.0
        k = math.ceil(position / math.ceil(n / x))
        return probability(k) / k

    return score


def seg_fuse_probability(lists: Lists, grades: Grades, least: int, position: int) -> float:
    start, k = 0, 1
    while position > start + 10 * 2 ** (k - 1) - 5:
        start, k = start + 10 * 2 ** (k - 1) - 5, k + 1
    stop = start + 10 * 2 ** (k - 1) - 5
    shares = [
        share(q, lists.get(q, ())[start:stop], grades, least, judged_only=False) for q in grades
    ]
    return sum(shares) / len(shares)


def pos_fuse(lists: Lists, grades: Grades, least: int, config: Mapping[str, Any]) -> Score:  # noqa: ARG001
    def score(position: int | None, n: int) -> float:  # noqa: ARG001
        if position is None:
            return 0.0
        there = [(q, lists[q][position - 1]) for q in lists if len(lists[q]) >= position]
        return sum(relevant(grades, q, d, least) for q, d in there) / len(there) if there else 0.0

    return score


def slide_fuse(lists: Lists, grades: Grades, least: int, config: Mapping[str, Any]) -> Score:
    at = pos_fuse(lists, grades, least, config)
    window: int = config["window"]

    def score(position: int | None, n: int) -> float:
        if position is None:
            return 0.0
        first, last = max(position - window, 1), min(position + window, n)
        return sum(at(p, n) for p in range(first, last + 1)) / (last - first + 1)

    return score


def map_fuse(lists: Lists, grades: Grades, least: int, config: Mapping[str, Any]) -> Score:  # noqa: ARG001
    total = 0.0
    for query, judged in grades.items():
        hits, precisions = 0, 0.0
        for rank, document in enumerate(lists.get(query, ()), start=1):
            if relevant(grades, query, document, least):
                hits += 1
                precisions += hits / rank
        total += precisions / max(sum(grade >= least for grade in judged.values()), 1)
    return lambda position, n: 0.0 if position is None else total / len(grades) / position  # noqa: ARG005


def bayes_fuse(lists: Lists, grades: Grades, least: int, config: Mapping[str, Any]) -> Score:  # noqa: ARG001
    bounds = [0, 5, 10, 15, 20, 30, 100, 200, 500, 1000]

    def score(position: int | None, n: int) -> float:  # noqa: ARG001
        p = 0.0
        if position is not None:
            k = max(i for i in range(9) if bounds[i] < position)
            hits = sum(
                relevant(grades, q, d, least)
                for q in grades
                for d in lists.get(q, ())[bounds[k] : bounds[k + 1]]
            )
            p = hits / (bounds[k + 1] - bounds[k]) / len(grades)
        p = min(max(p, 0.001), 0.999)
        return math.log(p / (1 - p))

    return score


TRAINED = {
    "prob_fuse": prob_fuse,
    "pos_fuse": pos_fuse,
    "slide_fuse": slide_fuse,
    "map_fuse": map_fuse,
    "bayes_fuse": bayes_fuse,
}

#: Trained methods that no function above fits from beginning to end → what tests their formula.
TESTED_IN = {
    "seg_fuse": "tests/methods/fuse/test_trained.py",
    "logistic_regression": "tests/methods/fuse/test_trained.py",
    "coordinate_ascent": "tests/methods/fuse/test_trained.py",
    "lambdamart": "tests/methods/fuse/test_trained.py",
}
