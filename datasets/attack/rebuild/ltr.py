"""The rerank list: LambdaMART (Burges 2010) by LightGBM, trained on the train split only.

Train queries are scored by models that have not seen their technique family; dev and test queries
by one model trained on all of train. So no score was learned from its own judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import lightgbm
import numpy as np
from numpy.typing import NDArray
from texts import Sentence

from fusion_bench.data.ordering import FloatArray

FOLDS = 5
#: With the leaves below, chosen among four settings by the out-of-fold scores of train.
ROUNDS = 100
#: One thread, one fixed way to build histograms, fixed seeds: the same model every time.
PARAMETERS = {
    "objective": "lambdarank",
    "label_gain": [0, 1, 2],  # linear, as the measures are
    "lambdarank_truncation_level": 20,
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


def folds(queries: Sequence[Sentence]) -> NDArray[np.int64]:
    """Which model scores each query: 0 … FOLDS−1 within train, FOLDS for all others.

    Families go to the fold with the fewest queries, the largest first, so the folds are even.
    """
    sizes: dict[str, int] = {}
    for query in queries:
        if query.split == "train":
            sizes[query.family] = sizes.get(query.family, 0) + 1
    filled = [0] * FOLDS
    fold_of: dict[str, int] = {}
    for family in sorted(sizes, key=lambda f: (-sizes[f], f)):
        fold_of[family] = filled.index(min(filled))
        filled[fold_of[family]] += sizes[family]
    return np.array([fold_of.get(q.family, FOLDS) for q in queries], dtype=np.int64)


def rerank_scores(
    queries: Sequence[Sentence],
    features: dict[str, FloatArray],
    gains: NDArray[np.int64],
    pool: NDArray[np.bool_],
    advance: Callable[[], None],
) -> tuple[FloatArray, dict[str, float]]:
    """Score the pool of every query.

    Args:
        queries: Shape (Q,).
        features: By name, each of shape (Q, D).
        gains: Shape (Q, D): grades.
        pool: Shape (Q, D): what some run returned.
        advance: Called after each of the FOLDS + 1 models.

    Returns:
        Scores of shape (Q, D), NaN outside the pool, and each feature's share of the gain in the
        last model.
    """
    fold = folds(queries)
    train = np.array([q.split == "train" for q in queries])
    made = np.full(pool.shape, np.nan)
    for number in range(FOLDS + 1):
        model = _fit(features, gains, pool, train & (fold != number))
        asked = fold == number
        cells = pool & asked[:, None]
        made[cells] = model.predict(_rows(features, cells), num_threads=1)
        advance()
    gained = model.feature_importance(importance_type="gain")
    return made, dict(zip(features, (gained / gained.sum()).tolist(), strict=True))


def _fit(
    features: dict[str, FloatArray],
    gains: NDArray[np.int64],
    pool: NDArray[np.bool_],
    learn: NDArray[np.bool_],
) -> lightgbm.Booster:
    cells = pool & learn[:, None]
    data = lightgbm.Dataset(
        _rows(features, cells),
        label=gains[cells],
        group=cells.sum(axis=1)[learn],
        feature_name=[name.replace(" ", "_") for name in features],
        params=PARAMETERS,
    )
    return lightgbm.train(PARAMETERS, data, num_boost_round=ROUNDS)


def _rows(features: dict[str, FloatArray], cells: NDArray[np.bool_]) -> FloatArray:
    """One row a cell, query by query; one column a feature."""
    return np.column_stack([table[cells] for table in features.values()])
