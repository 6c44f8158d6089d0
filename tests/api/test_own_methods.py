"""Functions and classes of the user in ``compare``, ``tune`` and ``fuse``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import fusion_bench as fb
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from tests.api.cases import QRELS, RUNS, make_collection

Scores = Mapping[str, float]


def my_rrf(lists: Mapping[str, Scores], k: float = 60.0) -> Scores:
    terms: dict[str, list[float]] = {}
    for ranked in lists.values():
        for rank, document in enumerate(ranked, start=1):
            terms.setdefault(document, []).append(1 / (k + rank))
    return {document: math.fsum(values) for document, values in terms.items()}


def own_min_max(scores: FloatArray) -> FloatArray:
    if (np.diff(scores) > 0).any():  # an assert, which pytest rewrites, would have no source
        raise ValueError("the best first")
    spread = scores[0] - scores[-1]
    return np.ones(len(scores)) if spread == 0 else (scores - scores[-1]) / spread


def own_linear(fused: Scores, reranked: Scores, beta: float = 0.7) -> Scores:
    for scores in (fused, reranked):
        if list(scores.values()) != sorted(scores.values(), reverse=True):
            raise ValueError("the best first")
    return {d: math.fsum([(1 - beta) * fused[d], beta * reranked[d]]) for d in reranked}


def my_ndcg(grades: Sequence[int | None], ideal: Sequence[int], depth: int = 10) -> float:
    def total(values: Sequence[int | None]) -> float:
        return sum((grade or 0) / math.log2(r + 2) for r, grade in enumerate(values[:depth]))

    return total(grades) / total(ideal)


def test_a_function_has_the_numbers_of_the_method_that_it_repeats() -> None:
    qrels, runs = make_collection(30)
    reranker = runs["dense"]
    blend = {"reranker": "r", "depth": 20, "missing": "below"}
    systems = {
        "rrf": "rrf",
        "own rrf": my_rrf,
        "rrf 5": fb.rrf(5),
        "own rrf 5": (my_rrf, {"k": 5.0}),
        "convex": fb.weighted(),
        "own convex": fb.weighted(normalize=own_min_max),
        "linear": {"fusion": "rrf", "blend": {**blend, "method": "linear", "beta": 0.7}},
        "own linear": {"fusion": my_rrf, "blend": {**blend, "method": own_linear}},
    }
    measures = ["nDCG@10", my_ndcg, (my_ndcg, {"depth": 5, "cutoff": 5}), "nDCG@5"]
    result = fb.compare(qrels, runs, systems, measures, rerankers={"r": reranker})
    values = result.to_pandas(per_query=True).pivot(index="query", columns="system")
    for own in ("rrf", "rrf 5", "convex", "linear"):
        for name in result.report.collections[0].measures:
            assert values[name, f"own {own}"].equals(values[name, own]), (own, name)
    for own, name in (("my_ndcg", "nDCG@10"), ("my_ndcg(depth=5)@5", "nDCG@5")):
        np.testing.assert_allclose(values[own], values[name], rtol=1e-12)
    assert not [text for text in result.warnings if "not replayable" in text]
    origin = result.report.settings["measure_distributions"]["my_ndcg"]
    assert origin.startswith("source sha256:")


def test_a_report_says_what_is_not_replayable() -> None:
    offset = 3.0

    def shifted(lists: Mapping[str, Scores]) -> Scores:
        return {d: s + offset for ranked in lists.values() for d, s in ranked.items()}

    def constant(grades: Sequence[int | None], ideal: Sequence[int]) -> float:
        return offset * len(grades) / len(ideal)

    result = fb.compare(QRELS, RUNS, {"bm25": "bm25", "mine": shifted}, ["RR@10", constant])
    told = [text for text in result.warnings if "not replayable" in text]
    assert [text.split()[0] for text in sorted(told)] == ["constant", "shifted"]
    assert all("offset" in text for text in told)
    assert "not replayable" in result.page().html


def test_space_says_what_is_searched() -> None:
    qrels, runs = make_collection(30)
    tuned = fb.tune(qrels, runs, my_rrf, space={"k": (1.0, 30.0)}, trials=4, folds=0)
    assert tuned.report.system == "my_rrf"
    assert {trial.params["fusion.k"] for trial in tuned.report.trials} - {60.0}
    assert isinstance(tuned.system.fusion.model_dump()["k"], float)
    listed = fb.tune(qrels, runs, my_rrf, space={"k": [5.0, 60.0]}, trials=12, folds=0)
    assert {trial.params["fusion.k"] for trial in listed.report.trials} == {5.0, 60.0}
    with pytest.raises(ConfigError, match="nothing to tune"):
        fb.tune(qrels, runs, my_rrf, trials=4, folds=0)
    with pytest.raises(ConfigError, match=r"fusion\.x"):
        fb.tune(qrels, runs, my_rrf, space={"x": (1, 2)}, trials=4, folds=0)


def test_own_functions_need_names_and_take_parameters() -> None:
    own, known = fb.fuse(RUNS, my_rrf, k=3.0), fb.fuse(RUNS, "rrf", k=3)
    assert own.name == "my_rrf"
    assert own.to_dict() == known.to_dict()
    with pytest.raises(ConfigError, match="alias of AP"):
        fb.compare(QRELS, RUNS, measures=[map])


def fails(lists: Mapping[str, Scores]) -> Scores:
    raise KeyError(next(iter(lists)))


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ([], "list"),
        ({"d1": 1.0, "d2": 0.5}, "no score for 'd3'"),
        ({"d1": 1.0, "d2": 0.5, "d3": 0.1, "x": 1.0}, "'x'"),
        ({"d1": math.nan, "d2": 0.5, "d3": 0.1}, "nan"),
        ({"d1": "high", "d2": 0.5, "d3": 0.1}, "'high'"),
    ],
)
def test_what_no_score_is_is_an_error_that_names_the_query(returned: Any, problem: str) -> None:  # noqa: ANN401 - anything
    with pytest.raises(ConfigError) as error:
        fb.fuse(RUNS, lambda lists: returned)  # noqa: ARG005 - of the contract
    assert "'q1'" in str(error.value)
    assert problem in str(error.value)


def test_an_exception_is_an_error_that_names_the_query() -> None:
    with pytest.raises(ConfigError, match="fails: query 'q1': KeyError"):
        fb.fuse(RUNS, fails)
    with pytest.raises(ConfigError, match="2 numbers"):
        fb.fuse(RUNS, fb.weighted(normalize=lambda scores: scores[:1]))
    with pytest.raises(ConfigError, match=r"query 'q\d'.*None"):
        fb.compare(QRELS, RUNS, measures=[lambda grades, ideal: None])  # noqa: ARG005 - of the contract


def map(grades: Sequence[int | None], ideal: Sequence[int]) -> float:  # noqa: A001 - as users may
    return len(grades) / len(ideal)
