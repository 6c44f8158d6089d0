"""Values of what the other folds choose, for real and for shuffled features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.policies import TrainablePolicy
from fusion_bench.stats.resampling import random_words

#: Order of the queries whose features stand in → (Q,) values out of fold, and (Q,) codes.
Chooser = Callable[[IntArray], tuple[FloatArray, IntArray]]


def best_of_other_folds(values: FloatArray, fold: IntArray) -> IntArray:
    """(Q,): for each query the row with the greatest mean over the other folds.

    Args:
        values: Shape (T, Q).
        fold: Shape (Q,): 0 … K−1.
    """
    is_member = fold[:, None] == np.arange(int(fold.max()) + 1)
    elsewhere = values.sum(axis=1)[:, None] - values @ is_member
    counts = len(fold) - is_member.sum(axis=0)
    best = np.argmax(elsewhere / counts, axis=0)
    return np.asarray(best[fold])


def rule_chooser(codes: IntArray, values: FloatArray, fold: IntArray) -> Chooser:
    """An untrained policy: shuffling its features only permutes its choices.

    Args:
        codes: Shape (T, Q): the variant that each parameter set picks.
        values: Shape (V, Q): of each variant.
        fold: Shape (Q,).
    """
    queries = np.arange(len(fold))

    def choose(order: IntArray) -> tuple[FloatArray, IntArray]:
        moved = codes[:, order]
        table = values[moved, queries]
        best = best_of_other_folds(table, fold)
        return table[best, queries], moved[best, queries]

    return choose


def trained_chooser(
    candidates: Sequence[TrainablePolicy],
    matrix: FloatArray,
    targets: FloatArray,
    values: FloatArray,
    fold: IntArray,
) -> Chooser:
    """A trained policy: nested, so that a fold neither fits nor chooses what it is valued with.

    Parameters are chosen for fold k by models fitted without k and a second fold, on that second
    fold; the model for k is fitted without k.

    Args:
        candidates: T parameter sets.
        matrix: Shape (Q, F): the features.
        targets: Shape (V, Q): what is learned, the value of the fused list of each variant.
        values: Shape (V, Q): what is judged, the value of the final list.
        fold: Shape (Q,).
    """
    members = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]

    def predict(policy: TrainablePolicy, moved: FloatArray, *left: int) -> list[IntArray]:
        """The variants for the queries of each fold that is left out."""
        keep = ~np.isin(fold, left)
        model = policy.fit(moved[keep], targets[:, keep], ())
        return [model.predict_codes(moved[members[k]]) for k in left]

    def choose(order: IntArray) -> tuple[FloatArray, IntArray]:
        moved = matrix[order]
        sums = np.zeros((len(candidates), len(members)))
        for a, b in combinations(range(len(members)), 2):
            for t, policy in enumerate(candidates):
                in_a, in_b = predict(policy, moved, a, b)
                sums[t, a] += values[in_b, members[b]].sum()
                sums[t, b] += values[in_a, members[a]].sum()
        codes = np.zeros(len(fold), dtype=np.int64)
        for k, best in enumerate(sums.argmax(axis=0).tolist()):
            [codes[members[k]]] = predict(candidates[best], moved, k)
        return values[codes, np.arange(len(fold))], codes

    return choose


def shuffled_orders(queries: int, count: int, seed: int) -> Iterator[IntArray]:
    """``count`` permutations of the queries, (Q,) each; the same on every machine."""
    for block in random_words(seed, count, queries, row_bytes=8 * queries):
        for words in block:
            yield np.argsort(words, kind="stable")
