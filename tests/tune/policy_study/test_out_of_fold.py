"""Choices out of fold against the obvious loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.methods.policies.regression import Regression
from fusion_bench.tune.policy_study import (
    best_of_other_folds,
    rule_chooser,
    shuffled_orders,
    trained_chooser,
)


@given(st.integers(0, 10**6))
def test_rules_are_chosen_as_by_the_slow_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trials, variants, queries, folds = 4, 3, 13, 3
    codes = rng.integers(0, variants, (trials, queries))
    values = rng.integers(0, 9, (variants, queries)) / 8
    fold = np.concatenate([np.arange(folds), rng.integers(0, folds, queries - folds)])
    order = rng.permutation(queries)
    chosen, picked = rule_chooser(codes, values, fold)(order)
    for q in range(queries):
        means = [
            np.mean([values[codes[t, order[p]], p] for p in range(queries) if fold[p] != fold[q]])
            for t in range(trials)
        ]
        best = [t for t in range(trials) if means[t] >= max(means) - 1e-12]
        assert picked[q] in codes[best, order[q]]
        assert chosen[q] == values[picked[q], q]


def test_no_fold_has_a_say_in_what_it_gets() -> None:
    rng = np.random.default_rng(3)
    values, fold = rng.random((5, 20)), np.arange(20) % 4
    best = best_of_other_folds(values, fold)
    for k in range(4):
        changed = np.where(fold == k, rng.random((5, 20)), values)
        assert best_of_other_folds(changed, fold)[fold == k].tolist() == best[fold == k].tolist()


def test_a_trained_policy_learns_nothing_from_the_fold_that_it_is_valued_on() -> None:
    rng = np.random.default_rng(5)
    matrix, values, fold = rng.normal(size=(30, 3)), rng.random((4, 30)), np.arange(30) % 3
    candidates = [Regression(ridge=ridge) for ridge in (0.1, 10.0)]
    order = np.arange(30)
    _, codes = trained_chooser(candidates, matrix, values, values, fold)(order)
    for k in range(3):
        changed = np.where(fold == k, rng.random((4, 30)), values)
        _, again = trained_chooser(candidates, matrix, changed, changed, fold)(order)
        assert again[fold == k].tolist() == codes[fold == k].tolist()


def test_a_trained_policy_finds_what_a_feature_tells() -> None:
    rng = np.random.default_rng(7)
    sign = rng.choice([-1.0, 1.0], 60)
    values = np.stack([sign > 0, sign < 0]).astype(float)
    matrix = np.stack([sign, rng.normal(size=60)], axis=1)
    choose = trained_chooser([Regression()], matrix, values, values, np.arange(60) % 5)
    chosen, _ = choose(np.arange(60))
    assert chosen.mean() == 1.0
    shuffled, _ = choose(next(iter(shuffled_orders(60, 1, 0))))
    assert shuffled.mean() < 0.8


def test_shufflings_are_permutations_and_the_same_every_time() -> None:
    orders = list(shuffled_orders(11, 4, seed=2))
    assert [sorted(order.tolist()) for order in orders] == [list(range(11))] * 4
    assert len({tuple(order.tolist()) for order in orders}) == 4
    again = list(shuffled_orders(11, 4, seed=2))
    assert all((a == b).all() for a, b in zip(orders, again, strict=True))
    assert orders[0].tolist() != next(iter(shuffled_orders(11, 1, seed=3))).tolist()


def test_of_equal_means_the_first_is_chosen() -> None:
    values = np.array([[0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]])
    assert best_of_other_folds(values, np.array([0, 0, 1, 1])).tolist() == [0, 0, 0, 0]
