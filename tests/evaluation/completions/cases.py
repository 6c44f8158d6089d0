"""Two lists of one query with unjudged documents, and the slow loop over every completion."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
from hypothesis import strategies as st

from fusion_bench.checks.completions import TopCandidates, collect_top
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.ranking.final_lists import list_parts

Case: TypeAlias = tuple[dict[str, int], list[str], list[str]]
SCALE = (0, 1, 2)
DOCUMENTS = "abcdefgh"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Grades of the judged documents, and two lists; at most 5 documents are unjudged."""
    first = draw(st.permutations(DOCUMENTS))[: draw(st.integers(1, 6))]
    second = draw(st.permutations(DOCUMENTS))[: draw(st.integers(1, 6))]
    judged = draw(st.permutations(DOCUMENTS))[: draw(st.integers(3, 7))]
    return {document: draw(st.integers(-1, 2)) for document in judged}, first, second


def make_top(
    grades: Mapping[str, int], first: Sequence[str], second: Sequence[str], cutoff: int | None
) -> TopCandidates:
    """The lists side by side, after a query in which nothing is unjudged."""
    qrels = Qrels.from_dict({"p": {"a": 1}, "q": dict(grades)})
    lists = {"first": first, "second": second}
    runs = align(
        qrels,
        [
            Run.from_dict(name, {"p": {"a": 1.0}, "q": {d: -float(i) for i, d in enumerate(ids)}})
            for name, ids in lists.items()
        ],
    )
    parts = [list_parts(System(name=name, runs=(name,)), runs) for name in lists]
    return collect_top(runs, *parts, cutoff=cutoff)


def slow_value(name: str, ids: Sequence[str], grades: Mapping[str, int], cutoff: int) -> float:
    row = [max(0, grades.get(document, 0)) for document in ids][:cutoff]
    relevant = sum(grade > 0 for grade in grades.values())
    hits = [i for i, grade in enumerate(row, 1) if grade > 0]
    if name in {"nDCG", "exp"}:
        best = sorted((max(0, grade) for grade in grades.values()), reverse=True)[:cutoff]
        dcg, ideal = (
            sum(
                (2**grade - 1 if name == "exp" else grade) / math.log2(i + 1)
                for i, grade in enumerate(gains, 1)
            )
            for gains in (row, best)
        )
        return dcg / ideal if ideal else 0.0
    if name == "RR":
        return 1 / hits[0] if hits else 0.0
    if name == "Success":
        return float(bool(hits))
    if name == "P":
        return len(hits) / cutoff
    if name == "R":
        return len(hits) / relevant if relevant else 0.0
    return sum(j / i for j, i in enumerate(hits, 1)) / relevant if relevant else 0.0


def slow_differences(
    name: str, grades: Mapping[str, int], first: Sequence[str], second: Sequence[str], cutoff: int
) -> dict[tuple[tuple[str, int], ...], float]:
    seen = dict.fromkeys((*first[:cutoff], *second[:cutoff]))
    unknown = [document for document in seen if document not in grades]
    values = {}
    for chosen in product(SCALE, repeat=len(unknown)):
        added = tuple(zip(unknown, chosen, strict=True))
        known = {**grades, **dict(added)}
        a, b = (slow_value(name, ids, known, cutoff) for ids in (first, second))
        values[added] = a - b
    return values


def of_last_query(values: np.ndarray) -> float:
    return float(values[-1])
