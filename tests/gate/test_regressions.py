"""Which term moved a document, case by case."""

from typing import Any

import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.evaluation.explanation import Explanation, explain_ranking
from fusion_bench.experiment.system import System
from fusion_bench.gate.comparison import explain_move

LISTS = {
    "a": {"q": {"d1": 9.0, "d2": 8.0, "d3": 7.0, "d4": 6.0}},
    "b": {"q": {"d3": 9.0, "d2": 8.0}},
    "c": {"q": {"d5": 9.0}},
}
RERANK = {"q": {"d1": 0.9, "d2": 0.8, "d3": 0.7, "d4": 0.6, "d5": 0.5}}


def under(*runs: str, **options: object) -> Explanation:
    aligned = align(
        Qrels.from_dict({"q": {"d1": 1}}),
        [Run.from_dict(name, lists) for name, lists in LISTS.items()],
        rerankers=[Run.from_dict("r", RERANK)],
        spaces={"r": "unit"},
    )
    system = System.model_validate({"name": "s", "runs": runs or ("a", "b"), **options})
    return explain_ranking(system, aligned, "q")


def rrf(**weights: float) -> dict[str, Any]:
    return {"fusion": {"method": "rrf", "weights": weights}}


LINEAR = {"method": "linear", "reranker": "r", "beta": 0.5, "retrieval": "reciprocal_rank"}

CASES: list[tuple[str, Explanation, Explanation, str]] = [
    ("d1", under(**rrf(a=3)), under(**rrf(a=3)), "same rank"),
    ("d1", under(**rrf(a=9, b=0.1)), under(**rrf(b=0.1)), "a 0.1475 → 0.01639"),
    ("d3", under(**rrf(b=0.1)), under(**rrf(b=9)), "b 0.001639 → 0.1475"),
    ("d1", under("a"), under("a", "b"), "its terms did not change; d3 passed it: b – → 0.01639"),
    ("d4", under("a"), under("a", "c"), "its terms did not change; d5 is new above it"),
    ("d4", under("a"), under("b"), "no source in use returns it now"),
    ("d4", under("b"), under("a"), "no source in use returned it before"),
    ("d4", under("b"), under("c"), "no source returns it"),
    (
        "d4",
        under("a", blend=LINEAR),
        under("a", blend={**LINEAR, "depth": 3, "beta": 0.0}),
        "same rank",
    ),
    (
        "d3",
        under("a", top_k=3),
        under("a", "b", top_k=1, **rrf(b=0.1)),
        "top_k 3 → 1; its terms did not lower it",
    ),
    ("d3", under("a"), under("a", top_k=1), "top_k none → 1; its terms did not lower it"),
    (
        "d1",
        under("a", blend={**LINEAR, "depth": 1}),
        under("a", "b", blend={**LINEAR, "depth": 1}, **rrf(b=9)),
        "now beyond the rerank depth: below every candidate (was ranked)",
    ),
    (
        "d1",
        under("a", blend=LINEAR),
        under("a", "b", blend=LINEAR, **rrf(b=9)),
        "fused rank 1 → 3, retrieval 0.5 → 0.1667",
    ),
]


@pytest.mark.parametrize(("document", "old", "new", "words"), CASES, ids=[c[3] for c in CASES])
def test_moved_by(document: str, old: Explanation, new: Explanation, words: str) -> None:
    cause = explain_move(document, old, new)
    assert cause.startswith(words), cause


def test_the_terms_of_the_fused_score_stand_behind_those_of_the_blend() -> None:
    old, new = under("a", blend=LINEAR), under("a", "b", blend=LINEAR, **rrf(b=9))
    assert explain_move("d1", old, new) == "fused rank 1 → 3, retrieval 0.5 → 0.1667"
    lighter = under("a", "b", blend=LINEAR, **rrf(a=0.1))
    assert explain_move("d1", old, lighter).endswith("→ 0.1667, a 0.01639 → 0.001639")
