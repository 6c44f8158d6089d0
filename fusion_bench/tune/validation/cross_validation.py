"""The procedure that is judged: search, then choose; and how much it gains on unseen queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.grouped_rows import factorize
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.experiment.tune_settings import Choose, Tuning
from fusion_bench.tune.search.search import Study
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import Problem
from fusion_bench.tune.validation.nested_cv import Nested, deal, nested
from fusion_bench.tune.validation.splits import BoolArray, Split
from fusion_bench.tune.validation.trial_selection import (
    believed_at_most,
    one_standard_error,
    sceptical_gains,
)

__all__ = ["choose", "cross_validate", "fold_of", "values_of"]

#: Settings evaluated together, so that a large collection's values fit in memory.
BATCH = 32
#: Two sums of the same numbers differ by less.
NOISE = 1e-9


def choose(problem: Problem, study: Study, keep: BoolArray, rule: Choose) -> Trial:
    """The trial to take.

    Args:
        problem: What was tuned.
        study: The search.
        keep: Shape (Q,): the queries that it looked at.
        rule: ``sceptical``, ``best`` or ``one_standard_error``.
    """
    if rule == "best":
        return study.best
    part = problem.restricted(keep)
    return _believed(part, study) if rule == "sceptical" else _nearest(part, study)


def _believed(part: Problem, study: Study) -> Trial:
    """The trial that a sceptic gives most; the first of equals, so the default before all."""
    default = part.values([study.default.params])[0]
    groups = factorize(part.runs.groups)[0]
    share = believed_at_most(len(np.unique(groups)))
    best = (0.0, 0)
    # Of a trial that is not better on the mean a sceptic believes nothing: no values are needed.
    better = [t for t in study.trials if t.value > study.default.value]  # NaN is not
    better.sort(key=lambda trial: -trial.value)
    for i in range(0, len(better), BATCH):
        some = better[i : i + BATCH]
        if share * (some[0].value - study.default.value) < best[0] - NOISE:
            break
        gains = sceptical_gains(part.values([t.params for t in some]), default, groups)
        found = [(gain, -t.number) for gain, t in zip(gains.tolist(), some, strict=True)]
        best = max(best, *found)
    return study.trials[-best[1]]


def _nearest(part: Problem, study: Study) -> Trial:
    """The trial nearest to the default among those level with the best."""
    done = [trial for trial in study.trials if not trial.failed]
    params = [trial.params for trial in done]
    index = one_standard_error(
        values_of(part, params),
        # In one form: a default that is another's double is no further away for it.
        part.points([part.canonical(one) for one in params]),
        part.points([part.canonical(part.default)])[0],
        factorize(part.runs.groups)[0],
    )
    return done[index]


def cross_validate(
    problem: Problem,
    split: Split,
    tuning: Tuning,
    search: Callable[[BoolArray], Study],
) -> Nested[Trial] | None:
    """Estimate what the whole procedure gains, on the tuning queries alone.

    Args:
        problem: What is tuned.
        split: Which queries it is tuned on.
        tuning: Folds, salt and rule.
        search: A mask of shape (Q,) of the queries it may look at → what it finds.

    Returns:
        None where no folds are asked for.
    """
    if not tuning.folds:
        return None
    return nested(
        lambda keep: choose(problem, search(keep), keep, tuning.choose),
        lambda trial: problem.values([trial.params])[0],
        fold_of(problem, split, tuning),
    )


def fold_of(problem: Problem, split: Split, tuning: Tuning) -> IntArray:
    """(Q,): the fold of each tuning query; −1 = held out.

    Raises:
        ConfigError: Fewer groups than folds.
    """
    index = np.flatnonzero(split.tune).tolist()
    runs = problem.runs
    fold = np.full(len(runs.queries), -1)
    fold[index] = deal(
        [runs.groups[q] for q in index],
        [runs.types[q] for q in index],
        folds=tuning.folds,
        salt=tuning.salt,
    )
    return fold


def values_of(problem: Problem, trials: Sequence[Params]) -> FloatArray:
    """(T, Q): some at a time."""
    parts = [problem.values(trials[i : i + BATCH]) for i in range(0, len(trials), BATCH)]
    return np.concatenate(parts)
