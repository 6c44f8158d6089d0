"""Fusions learned over features: what they minimize or maximize, and that they are repeatable."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import positions
from fusion_bench.errors import ConfigError, MissingExtraError
from fusion_bench.measures import compute_measures, parse_measure
from fusion_bench.methods.fuse import Trainable, fusions
from fusion_bench.methods.fuse.learned import (
    GRID,
    FittedLinearFusion,
    _Ascent,
    candidate_features,
    fit_logistic,
)
from tests.methods.fuse.trained_cases import make_judgments, make_lists, make_runs

RUNS = make_runs(make_lists(9, queries=20), make_judgments(9, queries=20))


def fit(runs: AlignedRuns, **config: object) -> FittedLinearFusion:
    fusion = fusions.build(config)
    assert isinstance(fusion, Trainable)
    model = fusion.fit(runs)
    assert isinstance(model, FittedLinearFusion)
    return model


def unseen(runs: AlignedRuns) -> AlignedRuns:
    """The same lists under other query ids."""
    return make_runs(
        {
            name: {f"new{q}": docs for q, docs in lists.items()}
            for name, lists in make_lists(9, queries=20).items()
        },
        {f"new{query}": {"d1": 1} for query in runs.queries},
    )


def test_features_say_what_each_list_says() -> None:
    lists = {"b": {"q": {"x": 3.0, "y": 1.0}}, "a": {"q": {"y": 9.0, "z": 8.0, "w": 4.0}}}
    runs = make_runs(lists, {"q": {"x": 1}})
    features = candidate_features(runs, ("c", "b", "a"))
    assert features.labels[:3] == ("1/rank", "rrf", "score")
    assert features.labels[-2:] == ("agreement", "best rank")
    assert [None if s is None else runs.sources[s] for s in features.sources[:7:3]] == [
        "a",
        "b",
        None,
    ]
    [y] = [n for n, d in enumerate(runs.documents) if runs.vocabulary[d] == "y"]
    expected = [1, 1, 1, 1 / 2, 61 / 62, 0, 0, 0, 0, 2 / 3, 1]
    np.testing.assert_allclose(features.values[:, y], expected)
    assert ((features.values >= 0) & (features.values <= 1)).all()


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_logistic_regression_minimizes_the_penalized_loss(penalty: float) -> None:
    random = np.random.default_rng(3)
    rows = np.vstack([np.ones(200), random.normal(size=(4, 200))])
    labels = (random.random(200) < 1 / (1 + np.exp(-(rows[1] - 2 * rows[2] - 1)))).astype(float)
    weights = np.array([1e-6, *[penalty] * 4])

    def loss(w: np.typing.NDArray[np.float64]) -> float:
        odds = w @ rows
        return float((np.logaddexp(0, odds) - labels * odds).sum() + (weights * w**2).sum() / 2)

    expected = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(fit_logistic(rows, labels, weights), expected, atol=1e-5)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_logistic_regression_of_one_class_is_finite(label: float) -> None:
    rows = np.vstack([np.ones(50), np.linspace(0, 1, 50)])
    fitted = fit_logistic(rows, np.full(50, label), np.array([1e-6, 1.0]))
    assert np.isfinite(fitted).all()
    assert np.sign(fitted[0]) == (1 if label else -1)


def test_logistic_scores_are_log_odds_that_average_to_the_share_of_relevant_ones() -> None:
    model = fit(RUNS, method="logistic_regression")
    chance = 1 / (1 + np.exp(-model.fuse(unseen(RUNS))))
    relevant = RUNS.judged & (RUNS.grades >= 1)
    assert chance.mean() == pytest.approx(relevant.mean(), abs=1e-6)


def test_a_greater_penalty_shrinks_the_weights() -> None:
    sizes = [
        np.abs(fit(RUNS, method="logistic_regression", l2=l2).weights).sum()
        for l2 in (0.1, 10.0, 1e6)
    ]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 1e-3


def mean_ndcg(weights: np.typing.NDArray[np.float64]) -> float:
    features = candidate_features(RUNS, RUNS.sources)
    ranks = positions(weights @ features.values, RUNS.offsets)
    return float(compute_measures([parse_measure("nDCG@10")], RUNS, ranks).mean())


def test_coordinate_ascent_ends_where_no_single_weight_can_be_better() -> None:
    model = fit(RUNS, method="coordinate_ascent", rounds=50)
    weights = np.array(model.weights)
    assert {round(10 * weight) for weight in model.weights} <= set(GRID)
    labels = candidate_features(RUNS, RUNS.sources).labels
    start = np.array([label == "rrf" for label in labels], dtype=float)
    best = mean_ndcg(weights)
    assert best > mean_ndcg(start)
    for f, value in product(range(len(weights)), GRID):
        other = weights.copy()
        other[f] = value / 10
        assert mean_ndcg(other) <= best + 1e-9


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "RR@3", "P@2", "R@5"])
def test_counting_and_sorting_give_the_same_mean(measure: str) -> None:
    features = np.round(candidate_features(RUNS, RUNS.sources).values, 1)  # many ties
    ascent = _Ascent(RUNS, features, parse_measure(measure))
    assert ascent.counted is not None
    for f in range(len(features)):
        counted = ascent.mean(features[f])
        ranks = positions(features[f], RUNS.offsets)
        expected = compute_measures([parse_measure(measure)], RUNS, ranks).mean()
        assert counted == expected
        ascent.counted = None
        assert ascent.mean(features[f]) == expected
        ascent = _Ascent(RUNS, features, parse_measure(measure))


def test_coordinate_ascent_stays_reciprocal_rank_fusion_where_nothing_is_better() -> None:
    lists = {name: {f"q{q}": {"x": 2.0, "y": 1.0} for q in range(4)} for name in "ab"}
    runs = make_runs(lists, {f"q{q}": {"x": 1} for q in range(4)})
    model = fit(runs, method="coordinate_ascent")
    labels = candidate_features(runs, runs.sources).labels
    assert model.weights == tuple(float(label == "rrf") for label in labels)


@pytest.mark.parametrize("measure", ["nDCG@x", "colour", "ERR@10", 3])
def test_coordinate_ascent_refuses_a_measure_that_it_cannot_compute(measure: object) -> None:
    with pytest.raises(ConfigError, match=r"^measure: "):
        fusions.build({"method": "coordinate_ascent", "measure": measure})


def test_lambdamart_is_the_same_in_every_run_and_for_every_query_alone() -> None:
    fusion = fusions.build({"method": "lambdamart", "trees": 10, "least_leaf": 2})
    assert isinstance(fusion, Trainable)
    model, again = fusion.fit(RUNS), fusion.fit(RUNS)
    assert model == again
    view = unseen(RUNS)
    together = model.fuse(view)
    assert len(np.unique(together)) > 5
    for q in range(len(view.queries)):
        rows = slice(int(view.offsets[q]), int(view.offsets[q + 1]))
        np.testing.assert_array_equal(model.fuse(view.between(q, q + 1)), together[rows])


def test_lambdamart_without_lightgbm_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    fusion = fusions.build("lambdamart")
    assert isinstance(fusion, Trainable)
    with pytest.raises(MissingExtraError, match=r"lambdamart.*\[learned\]"):
        fusion.fit(RUNS)
