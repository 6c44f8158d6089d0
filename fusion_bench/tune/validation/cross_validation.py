"""Nested cross-validation: how much search and selection together gain on unseen queries.

The folds share their training queries, so the interval around the estimate is too narrow (on an
exact null its test ships 4.6–6.3 % where 2.5 % is promised): it estimates, and the held-out part
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.splits import QuerySplit, groups_by_type, sort_by_hash
from fusion_bench.tune.validation.trial_selection import choose_trial
from fusion_bench.util.formatting import pluralize

#: Fewest groups to tune on where the experiment names no folds: two folds of two.
FEWEST_GROUPS: Final = 4


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What was chosen without each fold, and its values on that fold.

    Attributes:
        trials: (K,): the trial chosen without the fold.
        fold: Shape (Q,): the fold of each query; −1 = takes no part.
        values: Shape (Q,): the primary measure of what the other folds chose; NaN = no part.
    """

    trials: tuple[Trial, ...]
    fold: IntArray
    values: FloatArray


def cross_validate(
    objective: TuningObjective,
    split: QuerySplit,
    tuning: TuneSettings,
    search: Callable[[BoolArray, int], SearchResult],
) -> CrossValidation:
    """Search and choose once a fold, each time without that fold's queries.

    Args:
        objective: What is tuned.
        split: Which queries it is tuned on.
        tuning: Folds, split seed and rule.
        search: Mask of shape (Q,) of the queries that may be looked at, number of the fold,
            counted from 1 → the search there.
    """
    fold = tuning_folds(objective, split, tuning)
    values = np.full(len(fold), np.nan)
    trials = []
    for k in range(int(fold.max()) + 1):
        unseen = fold == k
        keep = (fold >= 0) & ~unseen
        trial = choose_trial(objective, search(keep, k + 1), keep, tuning.choose)
        values[unseen] = objective.evaluate_params([trial.params])[0][unseen]
        trials.append(trial)
    make_readonly(values)
    return CrossValidation(tuple(trials), fold, values)


def tuning_folds(objective: TuningObjective, split: QuerySplit, tuning: TuneSettings) -> IntArray:
    """(Q,): the fold of each tuning query; −1 = held out.

    Raises:
        ConfigError: Fewer than two folds, or fewer groups than folds.
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


def fit_default_folds(
    groups: Sequence[str], split: QuerySplit, tuning: TuneSettings
) -> tuple[TuneSettings, QuerySplit]:
    """Lower the default number of folds to the number of groups; folds of the user stay.

    Args:
        groups: Shape (Q,): the group of each query.
        split: Which queries it is tuned on.
        tuning: The settings.

    Returns:
        The settings, and the split, which says so where there are fewer folds.

    Raises:
        ConfigError: Fewer than four groups.
    """
    if "folds" in tuning.model_fields_set:
        return tuning, split
    distinct = len({groups[q] for q in np.flatnonzero(split.tune).tolist()})
    if distinct >= tuning.folds:
        return tuning, split
    if distinct < FEWEST_GROUPS:
        queries = pluralize(int(split.tune.sum()), "query")
        raise ConfigError(
            f"tune: {queries} of {pluralize(distinct, 'group')} are too few to tune on, at least "
            f"{FEWEST_GROUPS} groups are needed: judge more queries"
        )
    note = f"{distinct} folds instead of {tuning.folds}, as there are only {distinct} groups"
    lowered = tuning.model_copy(update={"folds": distinct})
    return lowered, replace(split, origin=f"{split.origin}; {note}")


def assign_folds(
    groups: Sequence[str], types: Sequence[str | None], *, folds: int, split_seed: str
) -> IntArray:
    """Deal whole groups into folds, type by type, in the order of their hash.

    Args:
        groups: Shape (Q,): the group of each query.
        types: Shape (Q,): its type or None.
        folds: K, at least 2.
        split_seed: Another one gives other folds.

    Returns:
        Shape (Q,): the fold of each query, 0 … K−1; no fold is empty.

    Raises:
        ConfigError: Fewer than two folds, or fewer groups than folds.
    """
    distinct = len(set(groups))
    if not 2 <= folds <= distinct:
        raise ConfigError(
            f"folds: must be at least 2 and at most the number of groups to tune on, {distinct}, "
            f"not {folds}"
        )
    fold: dict[str, int] = {}
    for _, members in sorted(groups_by_type(groups, types).items(), key=lambda item: item[0] or ""):
        for name in sort_by_hash(members, split_seed):
            fold[name] = len(fold) % folds
    codes = np.array([fold[group] for group in groups], dtype=np.int64)
    make_readonly(codes)
    return codes
