"""Choice of a trial and its worth: shrinkage, plateau, nested cross-validation.

The best of many trials is partly the luckiest, the more so the fewer the queries. Shrinkage pulls
each trial's gain toward a prior. The one-standard-error rule takes the trial nearest to the default
among those that *paired* differences cannot tell from the best.

The folds share their training queries, so the interval around the estimate is too narrow (on an
exact null its test ships 4.6–6.3 % where 2.5 % is promised): it estimates, and the held-out part
decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.data.query_splits import QuerySplit, assign_folds
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import SelectionRule, TuneSettings
from fusion_bench.report.tuning_records import MEAN_NOISE, Gain, TuningVerdict
from fusion_bench.stats.inference import MIN_CHANGED
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial
from fusion_bench.util.formatting import pluralize

#: A smaller gain than this is not worth a change, in the unit of the measure.
MIN_GAIN: Final = 0.005
#: One-sided level of the test that ``ship`` rests on.
LEVEL: Final = 0.025
#: What the search chose: other parameters, or the default, with or without better trials.
ChosenTrial: TypeAlias = Literal["tuned", "default", "default over better trials"]


def decide_verdict(
    gain: Gain,
    *,
    min_gain: float = MIN_GAIN,
    level: float = LEVEL,
    chosen: ChosenTrial = "tuned",
    unjudged_decide: bool = False,
    groups_decide: bool = False,
) -> TuningVerdict:
    """The verdict on the held-out gain of tuned − default.

    Args:
        gain: Held out, with an interval of coverage 1 − 2·``level``.
        min_gain: A smaller gain is not worth a change.
        level: One-sided level of ``ship``.
        chosen: What the search chose.
        unjudged_decide: Whether unjudged documents decide the answer that would be shown.
        groups_decide: Whether ``ship`` is withheld until the dataset's groups are declared.

    Returns:
        The first that applies. ``unjudged decide``: judge documents first. ``too few tuning
        queries``: the default was chosen though trials looked better. ``worse``: the loss is shown,
        at two-sided p of at most 2·``level``. ``keep``: the interval is below ``min_gain``, with at
        least 10 changed queries; or the default was chosen, and no trial looked better. ``ship``:
        the gain is shown, by draws; with ``groups_decide`` that is ``groups decide``. Else ``too
        few queries``.
    """
    if unjudged_decide:
        return "unjudged decide"
    if chosen == "default over better trials":
        return "too few tuning queries"
    is_shown = gain.p <= 2 * level
    if is_shown and gain.difference < 0:
        return "worse"
    is_below = gain.high is not None and gain.high < min_gain
    if chosen == "default" or (is_below and gain.changed >= MIN_CHANGED):
        return "keep"
    if is_shown and gain.is_drawn:
        return "groups decide" if groups_decide else "ship"
    return "too few queries"


#: Observations (queries or groups) that the prior counts as.
PRIOR_WEIGHT: Final = 10
#: Parameter sets evaluated together, so that a large collection's values fit in memory.
BATCH: Final = 32


def choose_trial(
    objective: TuningObjective,
    result: SearchResult,
    keep: BoolArray,
    rule: SelectionRule,
    batch: int = BATCH,
) -> Trial:
    """The trial to take.

    Args:
        objective: What was tuned.
        result: The search.
        keep: Shape (Q,): the queries that it looked at.
        rule: ``shrinkage``, ``best`` or ``one_standard_error``.
        batch: Trials evaluated together for ``shrinkage``.
    """
    if rule == "best":
        return result.best_trial
    part = objective.subset_queries(keep)
    if rule == "one_standard_error":
        done = result.computed_trials
        params = [trial.params for trial in done]
        index = one_standard_error(
            evaluate_in_batches(part, params),
            # Normalized: a default with the same weight ratios is no further away for its scale.
            part.unit_points([part.normalize_weights(each) for each in params]),
            part.unit_points([part.normalize_weights(part.default_params)])[0],
            part.runs.group_codes,
        )
        return done[index]
    default = part.evaluate_params([result.default_trial.params])[0]
    groups = part.runs.group_codes
    factor = shrinkage_factor(len(np.unique(groups)))
    best = (0.0, 0)
    # A mean gain of 0 or less is not greater after shrinkage: no values are needed.
    better = [t for t in result.trials if t.value > result.default_trial.value]  # NaN is not
    better.sort(key=lambda trial: -trial.value)
    for i in range(0, len(better), batch):
        trials = better[i : i + batch]
        if factor * (trials[0].value - result.default_trial.value) < best[0] - MEAN_NOISE:
            break
        values = part.evaluate_params([trial.params for trial in trials])
        gains = shrunken_gains(values, default, groups).tolist()
        best = max(best, *((gain, -t.number) for gain, t in zip(gains, trials, strict=True)))
    return result.trials[-best[1]]


def describe_choice(result: SearchResult, chosen: Trial) -> ChosenTrial:
    """Whether the default was chosen, and if so, whether trials looked better than it."""
    default = result.default_trial
    if chosen.number != default.number:
        return "tuned"
    is_best = not any(trial.value > default.value + MEAN_NOISE for trial in result.trials)
    return "default" if is_best else "default over better trials"


def evaluate_in_batches(objective: TuningObjective, trials: Sequence[Params]) -> FloatArray:
    """Values per query, shape (T, Q), some trials at a time."""
    batches = (trials[i : i + BATCH] for i in range(0, len(trials), BATCH))
    return np.concatenate([objective.evaluate_params(batch) for batch in batches])


def shrunken_gains(
    values: FloatArray, default: FloatArray, groups: IntArray | None = None
) -> FloatArray:
    """The gain of each trial over the default after shrinkage: (G·mean − 10·sd) / (G + 10).

    The posterior mean under a normal prior that is worth ten queries (or groups), each of which
    loses one standard deviation of the trial's differences. It is the mean less 10/√G standard
    errors, scaled: 2.2 errors for 20 queries, 1 for 100, a third for 1,000.

    Source: conjugate normal prior, Gelman et al., "Bayesian Data Analysis", section 2.5; the prior
    mean is below 0 because most changes do harm. The weight of ten was decided on subsamples, see
    docs/studies/tuning.md.

    Args:
        values: Shape (T, Q), the primary measure of each trial on the tuning queries.
        default: Shape (Q,), of the default.
        groups: Shape (Q,), integer codes; None = every query is its own group.

    Returns:
        Shape (T,), in the unit of the measure; 0 where nothing differs, −∞ where something differs
        and the spread is not known (one group).
    """
    gains = np.zeros(len(values))
    for t, row in enumerate(values):
        if (differences := row - default).any():
            mean = estimate_mean(differences, groups)
            loss = PRIOR_WEIGHT / math.sqrt(mean.groups) * mean.standard_error
            gain = shrinkage_factor(mean.groups) * (mean.mean - loss)
            gains[t] = gain if math.isfinite(gain) else -math.inf
    return gains


def shrinkage_factor(groups: int) -> float:
    """The weight of the data, G / (G + 10): no shrunken gain is a greater share of its mean."""
    return groups / (groups + PRIOR_WEIGHT)


def within_one_error(
    values: FloatArray, best: FloatArray, groups: IntArray | None = None
) -> BoolArray:
    """Mask of the trials within one standard error of the best, by paired differences.

    Source: Breiman, Friedman, Olshen and Stone 1984, section 3.4.3, with the standard error of
    the difference where they take that of the best: both saw the same queries.

    Args:
        values: Shape (T, Q), the primary measure of each trial on the tuning queries.
        best: Shape (Q,), of the best trial.
        groups: Shape (Q,), integer codes; None = every query is its own group.

    Returns:
        Shape (T,). One group tells no error: then only trials at least as good are.
    """
    means = [estimate_mean(best - row, groups) for row in values]
    errors = (mean.standard_error for mean in means)
    limits = [error if np.isfinite(error) else 0.0 for error in errors]
    return np.array([mean.mean for mean in means]) <= np.array(limits)


def one_standard_error(
    values: FloatArray,
    points: FloatArray,
    default: FloatArray,
    groups: IntArray | None = None,
) -> int:
    """The trial nearest to the default within one standard error of the best.

    Args:
        values: Shape (T, Q), the primary measure on the tuning queries.
        points: Shape (T, D), each trial's place in the unit cube of the search space; NaN in a
            dimension that the trial has not (a conditional parameter).
        default: Shape (D,), the default's place.
        groups: Shape (Q,), integer codes.

    Returns:
        Its index; of equally near ones the better, then the first.
    """
    means = values.mean(axis=1)
    best = int(np.argmax(means))
    level = np.flatnonzero(within_one_error(values, values[best], groups))
    # Euclidean distances in the unit cube; where only one has a dimension it counts 1.
    gap = points[level] - default
    one_sided = np.isnan(points[level]) != np.isnan(default)
    gap = np.where(one_sided, 1.0, np.where(np.isnan(gap), 0.0, gap))
    distances = np.sqrt((gap**2).sum(axis=1))
    return int(level[np.lexsort((-means[level], distances))[0]])


#: Fewest groups to tune on where the experiment names no folds: two folds of two.
FEWEST_GROUPS: Final = 4


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The choices made without each fold, and their values on that fold.

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
