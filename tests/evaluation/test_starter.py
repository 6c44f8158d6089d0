"""The systems that try compares, and the score space of a reranker."""

import pytest

from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.starter_systems import (
    build_starter_systems,
    guess_score_space,
    score_floor,
)
from fusion_bench.experiment.system import System


def run(name: str, *scores: float) -> Run:
    return Run.from_dict(name, {"q": {f"d{i}": score for i, score in enumerate(scores)}})


BM25, DENSE, LOGITS = run("bm25", 9, 4, 0), run("dense", 0.9, -0.2), run("logits", 3, -4)
PLAIN = [
    "bm25",
    "dense",
    "rrf k=60",
    "rrf k=10",
    "rrf bm25 x2",
    "rrf dense x2",
    "convex min-max",
    "convex theoretical",
    "z-score",
]


def test_lists_and_fusions_with_and_without_each_reranker() -> None:
    made = build_starter_systems([BM25, DENSE], [run("cohere", 0.5, 0.4, 0.3)])
    assert list(made.systems) == [*PLAIN, *(f"{name} + cohere" for name in PLAIN)]
    assert made.baseline == "rrf k=60"
    for name, keys in made.systems.items():
        system = System.model_validate({**keys, "name": name})
        assert system.reranker_names == (frozenset({"cohere"}) if "+" in name else frozenset())
    blend = made.systems["bm25 + cohere"]["blend"]
    assert (blend["depth"], blend["missing"]) == (3, "below")
    assert made.systems["rrf dense x2"]["fusion"]["weights"] == {"bm25": 1, "dense": 2}


@pytest.mark.parametrize(
    ("source", "floor"), [(BM25, 0), (DENSE, -1), (LOGITS, None), (run("zero", 0), 0)]
)
def test_the_least_possible_score_is_told_by_the_values(source: Run, floor: float | None) -> None:
    assert score_floor(source) == floor


def test_theoretical_min_max_is_left_out_with_a_sentence() -> None:
    made = build_starter_systems([BM25, LOGITS])
    assert "convex theoretical" not in made.systems
    assert any("left out" in note and "logits has -4 to 3" in note for note in made.notes)
    assert made.systems["convex min-max"]


def test_one_list_and_a_reranker_need_no_fusion() -> None:
    made = build_starter_systems([BM25], [run("cohere", 0.5)])
    assert list(made.systems) == ["bm25", "bm25 + cohere"]
    assert made.baseline == "bm25"


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([BM25], "at least two lists"),
        ([], "at least two lists"),
        ([BM25, run("rrf k=60", 1)], "'rrf k=60' names both"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs: list[Run], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_starter_systems(runs)


# ── what a rerank list's numbers mean, by their values


@pytest.mark.parametrize(
    ("lists", "space"),
    [
        ([[0.9, 0.5, 0.0], [1.0]], "unit"),
        ([[0.0, 0.0]], "unit"),
        ([[-0.1, -2.5], [-30.0, -31.0]], "log_prob"),
        ([[4.5, 0.1, -9.0]], "logit"),
        ([[17.5, 0.1, -9.0]], "unbounded"),
        ([[0.5, 12.0]], "unbounded"),
        ([[3, 2, 1], [2, 1]], "order"),
        ([[1, 1 / 2, 1 / 3], [1, 1 / 2]], "order"),
        ([[-1, -2, -3], [-1]], "order"),
        ([[3, 2, 1], [2.5, 1]], "unbounded"),
        ([[1.0], [1.0]], "unit"),
    ],
)
def test_the_first_rule_that_fits_decides(lists: list[list[float]], space: str) -> None:
    ranked = {
        f"q{q}": {f"d{d}": float(score) for d, score in enumerate(scores)}
        for q, scores in enumerate(lists)
    }
    assert guess_score_space(Run.from_dict("r", ranked))[0] == space
