"""Cross-fitting over all queries of a tuning run, where none are held out for good."""

from __future__ import annotations

import math
from typing import Final, cast

import numpy as np

from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.report.tuning_records.trials import Gain
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.cross_fitting import FLIPS, CrossFit, CrossFitRule, cross_fit
from fusion_bench.tune.validation.cross_validation import tuning_folds
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
    trials = [trial.params for trial in result.trials if not trial.is_failed]
    values = evaluate_in_batches(objective, trials)
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


def adopt_fit(gain: Gain, fit: CrossFit) -> Gain:
    """The gain with the interval and the p of the cross-fitting test."""
    low, high = fit.interval
    is_known = math.isfinite(fit.critical) and fit.standard_error > 0
    update = {"p": fit.p, "low": low if is_known else None, "high": high if is_known else None}
    return gain.model_copy(update=update)
