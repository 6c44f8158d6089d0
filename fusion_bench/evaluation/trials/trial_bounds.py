"""What unjudged documents could make of a system, over the trials of its lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.completions.query_bounds import QueryBounds, find_bounds
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.ranking.list_positions import list_parts
from fusion_bench.evaluation.trials.mean_bounds import mean_bounds
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure


def find_trial_bounds(
    task: EvaluationSet, system: System, measures: Sequence[Measure]
) -> tuple[QueryBounds | None, ...]:
    """(M,): the means over trials; None with complete judgments.

    Args:
        task: The evaluated queries.
        system: Any system; trained parts are fitted on each trial by itself.
        measures: M measures.
    """
    if bool(task.runs.judged.all()):  # nothing needs to be ranked
        return (None,) * len(measures)
    trials = task.trials[: task.count_trials(system)]
    fitted = ((trial.fit_system(system), trial.runs) for trial in trials)
    return find_fitted_bounds(
        fitted, measures, spaces=task.dataset.spaces, qrels=task.dataset.qrels
    )


def find_fitted_bounds(
    fitted: Iterable[tuple[System, AlignedRuns]],
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
) -> tuple[QueryBounds | None, ...]:
    """The same of a system that is fitted already.

    Args:
        fitted: (T,): for each trial the system, fitted there, and the lists.
        measures: M measures.
        spaces: Score space of each rerank list.
        qrels: The judgments.
    """
    return mean_bounds(
        [
            find_bounds(measures, runs, list_parts(system, runs, spaces), qrels)
            for system, runs in fitted
        ]
    )
