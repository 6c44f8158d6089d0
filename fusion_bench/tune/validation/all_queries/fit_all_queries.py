"""Cross-fitting over all queries of a tuning run, where none are held out for good."""

from __future__ import annotations

import math
from typing import Final, cast

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import IntArray
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.report.tuning_records.trials import Gain
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.all_queries.cross_fitting import (
    FLIPS,
    CrossFit,
    CrossFitRule,
    cross_fit,
)
from fusion_bench.tune.validation.cross_validation import tuning_folds
from fusion_bench.tune.validation.gains import clip_ends
from fusion_bench.tune.validation.splits import QuerySplit
from fusion_bench.tune.validation.trial_selection import evaluate_in_batches

#: Flips that exceed the critical value, at the level of the test; and most flips.
EXCEEDING, MOST_FLIPS = 25, 100_000
#: Two sums of the same numbers differ by less.
NOISE: Final = 1e-9


def fit_all_queries(
    objective: TuningObjective,
    split: QuerySplit,
    tuning: TuneSettings,
    result: SearchResult,
    *,
    level: float,
) -> CrossFit:
    """Choose among the trials of a search without each fold, and evaluate that on the fold.

    Args:
        objective: What was tuned.
        split: All queries, see :attr:`QuerySplit.is_cross_fitted`.
        tuning: Folds, rule and seed.
        result: A search whose trials do not depend on the values.
        level: One-sided.
    """
    values = evaluate_in_batches(objective, _list_trials(result))
    default = objective.evaluate_params([objective.default_params])[0]
    differences = values - default
    differences[np.abs(differences) <= NOISE] = 0.0
    return cross_fit(
        differences,
        tuning_folds(objective, split, tuning),
        list(objective.runs.groups),
        rule=cast("CrossFitRule", tuning.choose),
        level=level,
        flips=min(max(FLIPS, math.ceil(EXCEEDING / level)), MOST_FLIPS),
        seed=tuning.seed,
    )


def adopt_fit(gain: Gain, fit: CrossFit, *, is_bounded: bool) -> Gain:
    """The gain with the interval and the p of the cross-fitting test.

    Args:
        gain: Of the values of ``fit``.
        fit: Of all queries.
        is_bounded: Values lie in [0, 1].
    """
    ends = fit.interval if fit.standard_error > 0 else (math.nan, math.nan)
    low, high = clip_ends(*ends, is_bounded=is_bounded)
    return gain.model_copy(update={"p": fit.p, "low": low, "high": high})


def params_by_query(
    objective: TuningObjective,
    split: QuerySplit,
    tuning: TuneSettings,
    result: SearchResult,
    fit: CrossFit,
) -> tuple[list[Params], IntArray]:
    """The parameters that each query was evaluated with.

    Args:
        objective: What was tuned.
        split: All queries.
        tuning: Folds and seed, as :func:`fit_all_queries` had them.
        result: The search.
        fit: Of :func:`fit_all_queries`.

    Returns:
        One parameter set a fold, and the fold of each query, shape (Q,).
    """
    trials = _list_trials(result)
    params = [trials[t] if t >= 0 else objective.default_params for t in fit.chosen.tolist()]
    return params, tuning_folds(objective, split, tuning)


def _list_trials(result: SearchResult) -> list[Params]:
    """The parameters of the trials that could be computed."""
    return [trial.params for trial in result.trials if not trial.is_failed]
