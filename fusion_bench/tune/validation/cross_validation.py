"""The procedure that is judged: search, then choose; and how much it gains on unseen queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.grouped_rows import factorize
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.experiment.tune_settings import SelectionRule, TuneSettings
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.nested_cv import NestedEstimate, assign_folds, nested
from fusion_bench.tune.validation.splits import BoolArray, QuerySplit
from fusion_bench.tune.validation.trial_selection import (
    one_standard_error,
    shrinkage_factor,
    shrunken_gains,
)

__all__ = ["choose_trial", "cross_validate", "evaluate_in_batches", "tuning_folds"]

#: Settings evaluated together, so that a large collection's values fit in memory.
BATCH = 32
#: Two sums of the same numbers differ by less.
NOISE = 1e-9


def choose_trial(
    objective: TuningObjective, result: SearchResult, keep: BoolArray, rule: SelectionRule
) -> Trial:
    """The trial to take.

    Args:
        objective: What was tuned.
        result: The search.
        keep: Shape (Q,): the queries that it looked at.
        rule: ``shrinkage``, ``best`` or ``one_standard_error``.
    """
    if rule == "best":
        return result.best_trial
    part = objective.subset_queries(keep)
    return (
        _best_after_shrinkage(part, result)
        if rule == "shrinkage"
        else _nearest_to_default(part, result)
    )


def _best_after_shrinkage(part: TuningObjective, result: SearchResult) -> Trial:
    """The trial that a sceptic gives most; the first of equals, so the default before all."""
    default = part.evaluate_params([result.default_trial.params])[0]
    groups = factorize(part.runs.groups)[0]
    share = shrinkage_factor(len(np.unique(groups)))
    best = (0.0, 0)
    # Of a trial that is not better on the mean a sceptic believes nothing: no values are needed.
    better = [t for t in result.trials if t.value > result.default_trial.value]  # NaN is not
    better.sort(key=lambda trial: -trial.value)
    for i in range(0, len(better), BATCH):
        some = better[i : i + BATCH]
        if share * (some[0].value - result.default_trial.value) < best[0] - NOISE:
            break
        gains = shrunken_gains(part.evaluate_params([t.params for t in some]), default, groups)
        found = [(gain, -t.number) for gain, t in zip(gains.tolist(), some, strict=True)]
        best = max(best, *found)
    return result.trials[-best[1]]


def _nearest_to_default(part: TuningObjective, result: SearchResult) -> Trial:
    """The trial nearest to the default among those level with the best."""
    done = [trial for trial in result.trials if not trial.is_failed]
    params = [trial.params for trial in done]
    index = one_standard_error(
        evaluate_in_batches(part, params),
        # In one form: a default that is another's double is no further away for it.
        part.unit_points([part.normalize_weights(one) for one in params]),
        part.unit_points([part.normalize_weights(part.default_params)])[0],
        factorize(part.runs.groups)[0],
    )
    return done[index]


def cross_validate(
    objective: TuningObjective,
    split: QuerySplit,
    tuning: TuneSettings,
    search: Callable[[BoolArray], SearchResult],
) -> NestedEstimate[Trial] | None:
    """Estimate what the whole procedure gains, on the tuning queries alone.

    Args:
        objective: What is tuned.
        split: Which queries it is tuned on.
        tuning: Folds, split seed and rule.
        search: A mask of shape (Q,) of the queries it may look at → what it finds.

    Returns:
        None where no folds are asked for.
    """
    if not tuning.folds:
        return None
    return nested(
        lambda keep: choose_trial(objective, search(keep), keep, tuning.choose),
        lambda trial: objective.evaluate_params([trial.params])[0],
        tuning_folds(objective, split, tuning),
    )


def tuning_folds(objective: TuningObjective, split: QuerySplit, tuning: TuneSettings) -> IntArray:
    """(Q,): the fold of each tuning query; −1 = held out.

    Raises:
        ConfigError: Fewer groups than folds.
    """
    index = np.flatnonzero(split.tune).tolist()
    runs = objective.runs
    fold = np.full(len(runs.queries), -1)
    fold[index] = assign_folds(
        [runs.groups[q] for q in index],
        [runs.types[q] for q in index],
        folds=tuning.folds,
        split_seed=tuning.split_seed,
    )
    return fold


def evaluate_in_batches(objective: TuningObjective, trials: Sequence[Params]) -> FloatArray:
    """(T, Q): some at a time."""
    parts = [objective.evaluate_params(trials[i : i + BATCH]) for i in range(0, len(trials), BATCH)]
    return np.concatenate(parts)
