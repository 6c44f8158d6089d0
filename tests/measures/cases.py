"""Random judged rankings with ties, unjudged documents, negative grades and empty lists."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import IntArray, positions, tie_group_starts
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.measures import Measure, parse_measure

COMMON: Final = (
    "nDCG@1",
    "nDCG@3",
    "nDCG@20",
    "nDCG",
    "nDCG(dcg='exp-log2')@3",
    "nDCG(dcg='exp-log2')",
    "RR@2",
    "RR(rel=2)@10",
    "RR",
    "R@1",
    "R(rel=2)@4",
    "R@100",
    "AP@2",
    "AP@100",
    "AP",
    "AP(rel=2)",
    "P@1",
    "P@5",
    "P(rel=3)@2",
    "Success@1",
    "Success@3",
    "Success(rel=2)@9",
    "Judged@1",
    "Judged@3",
    "Judged@50",
    "Judged",
    "ERR@3",
    "ERR(max_grade=3)",
    "RBP",
    "RBP(p=0.5)@2",
    "RBP(p=0.99,rel=2)",
)


def all_measures() -> list[Measure]:
    plain = [parse_measure(name) for name in COMMON]
    return plain + [measure.with_judged_only() for measure in plain]


@dataclass(frozen=True)
class Case:
    """Grades of judged documents, and scores of candidates; None = a candidate not returned."""

    judgments: dict[str, dict[str, int]]
    scores: dict[str, dict[str, float | None]]

    def returned(self, query: str) -> dict[str, float]:
        found = self.scores.get(query, {})
        return {document: score for document, score in found.items() if score is not None}

    def ranked(self, query: str) -> list[str]:
        scores = self.returned(query)
        return sorted(sorted(scores, reverse=True), key=lambda document: -scores[document])


@dataclass(frozen=True)
class Built:
    qrels: Qrels
    runs: AlignedRuns
    positions: IntArray
    firsts: IntArray


def build(case: Case) -> Built:
    filled = {
        query: {document: 0.0 if score is None else score for document, score in scores.items()}
        for query, scores in case.scores.items()
    }
    qrels = Qrels.from_dict(case.judgments)
    runs = align(qrels, [Run.from_dict("run", filled)])
    scores = np.array(
        [
            case.scores[runs.queries[query]][runs.vocabulary[document]]
            for query, document in zip(runs.query_index, runs.documents, strict=True)
        ],
        dtype=np.float64,  # None becomes NaN: not returned
    )
    placed = positions(scores, runs.offsets)
    return Built(qrels, runs, placed, tie_group_starts(placed, scores, runs.offsets))


@st.composite
def cases(draw: st.DrawFn, *, documents: int = 10, levels: int = 4, lowest_grade: int = -2) -> Case:
    ids = [f"d{i}" for i in range(documents)]
    judgments: dict[str, dict[str, int]] = {}
    scores: dict[str, dict[str, float | None]] = {}
    grade = st.integers(lowest_grade, 3)
    score = st.one_of(st.none(), *[st.integers(0, levels - 1).map(float)] * 4)
    for q in range(draw(st.integers(1, 4))):
        judgments[f"q{q}"] = draw(st.dictionaries(st.sampled_from(ids), grade, min_size=1))
        found = draw(st.dictionaries(st.sampled_from(ids), score, min_size=int(q == 0)))
        if found:
            scores[f"q{q}"] = found
    return Case(judgments, scores)
