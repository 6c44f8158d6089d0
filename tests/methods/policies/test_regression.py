"""The trained policy: out of fold, and equal to the normal equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import AlignmentError
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.methods.policies import CrossFittedPolicy
from fusion_bench.methods.policies.regression import Regression
from fusion_bench.ranking.plain_systems import (
    choose_variants,
    fit_system,
    needs_fitting,
    query_features,
    variant_values,
)
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.methods.fuse.trained_cases import make_judgments, make_lists, make_runs

NDCG = parse_measure("nDCG@10")


def judged_runs(seed: int = 3, queries: int = 20) -> AlignedRuns:
    return make_runs(make_lists(seed, queries=queries), make_judgments(seed, queries=queries))


def system(**options: object) -> System:
    return System("s", ["a", "b", "c"], policy={"method": "regression", "ridge": 1.0, **options})


def test_the_coefficients_solve_the_normal_equations() -> None:
    rng = np.random.default_rng(0)
    matrix, values = rng.normal(size=(30, 4)), rng.normal(size=(3, 30))
    fitted = Regression(ridge=2.0).fit(matrix, values, [f"q{n}" for n in range(30)])
    x = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    for row, y, mean in zip(fitted.coefficients, values, fitted.means, strict=True):
        beta = np.array(row)
        assert mean == pytest.approx(y.mean())
        assert x.T @ (y - y.mean() - x @ beta) == pytest.approx(2.0 * beta)


def test_a_large_ridge_chooses_the_best_on_average() -> None:
    rng = np.random.default_rng(1)
    matrix, values = rng.normal(size=(30, 4)), rng.normal(size=(3, 30))
    fitted = Regression(ridge=1e12).fit(matrix, values, [])
    best = int(values.mean(axis=1).argmax())
    assert fitted.predict_codes(matrix).tolist() == [best] * 30


def test_a_fitted_policy_refuses_the_queries_that_it_learned_from() -> None:
    fitted = Regression().fit(np.eye(3), np.eye(3), ["q1", "q2", "q3"])
    fitted.check_queries(["q9"])
    with pytest.raises(AlignmentError, match=r"query 'q2' .* fitted on"):
        fitted.check_queries(["q9", "q2"])


def test_judgments_of_a_query_change_no_choice_for_it() -> None:
    runs = judged_runs()
    expected = fit_system(system(), runs)
    codes, variants = choose_variants(expected, runs)
    assert isinstance(expected.policy, CrossFittedPolicy)
    fold = expected.policy.fold_of_query
    for k in set(fold.values()):
        mine = np.array([fold[query] == k for query in runs.queries])
        grades = np.where(mine[runs.query_index], 2 - runs.grades, runs.grades)
        changed = replace(runs, grades=grades)
        again, _ = choose_variants(fit_system(system(), changed), changed)
        assert again[mine].tolist() == codes[mine].tolist()
    assert len(variants) == 7  # the own weights, and three sources times two factors


def test_variants_are_valued_as_the_system_that_they_make() -> None:
    runs = judged_runs()
    policy = Regression()
    variants = policy.variants(query_features(system(), runs))
    values = variant_values(system(), variants, runs, NDCG)
    plain = [system().with_variant(variant) for variant in variants]
    for row, scores in zip(values, evaluate_systems(plain, runs, [NDCG]), strict=True):
        assert row.tolist() == scores.values[0].tolist()


def test_evaluation_fits_it_and_unseen_queries_get_the_model_of_all() -> None:
    runs, later = judged_runs(), judged_runs(9, 4)
    later = replace(later, queries=tuple(f"new{q}" for q in range(4)))
    assert needs_fitting(system())
    fitted = fit_system(system(), runs)
    assert not needs_fitting(fitted)
    assert fit_system(fitted, later) is fitted
    codes, _ = choose_variants(fitted, later)
    assert isinstance(fitted.policy, CrossFittedPolicy)
    matrix = Regression().feature_matrix(query_features(system(), later))
    assert codes.tolist() == fitted.policy.models[-1].predict_codes(matrix).tolist()
    [scores] = evaluate_systems([system()], runs, [NDCG])
    [again] = evaluate_systems([fitted], runs, [NDCG])
    assert scores.values.tolist() == again.values.tolist()


def test_unfitted_unjudged_and_textless_are_refused() -> None:
    runs = judged_runs()
    with pytest.raises(AlignmentError, match="not fitted"):
        choose_variants(system(), runs)
    with pytest.raises(AlignmentError, match=r"'s':.*'regression'"):
        fit_system(system(), replace(runs, grades=np.zeros_like(runs.grades)))
    with pytest.raises(AlignmentError, match="'q00' has no text"):
        fit_system(system(words=True), runs)
    texts = replace(runs, words=tuple(range(len(runs.queries))))
    assert not needs_fitting(fit_system(system(words=True), texts))
