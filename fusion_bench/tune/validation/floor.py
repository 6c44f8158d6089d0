"""The floor of tuning: untuned systems and single sources on the held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.final_lists import drop_final
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.evaluation.completions.query_bounds import QueryBounds
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.evaluation.run_experiment import Progress, load_lists
from fusion_bench.evaluation.trials.evaluate_trials import evaluate_trials, trials_of
from fusion_bench.evaluation.trials.trial_bounds import find_trial_bounds
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.tuning_records.floor import FloorKind, FloorRow
from fusion_bench.stats.answers import decide_answer
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.max_t import FamilyRow, max_t
from fusion_bench.stats.skew_rule import check_skew
from fusion_bench.stats.trials.paired_trials import paired_sides
from fusion_bench.stats.trials.trial_variance import make_trial_terms
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.gains import clip_ends


@dataclass(frozen=True, eq=False)
class UntunedValues:
    """What nobody tuned, on every query of an objective.

    Attributes:
        names: R systems and sources.
        kinds: What each is.
        values: Shape (R, Q), the measure that is tuned for.
        trials: Of each its values on each trial of its lists, (T, Q); None = there is one.
        are_shared: Whether each reads a list of several files that the tuned system reads too.
        bounds: Of each how much is judged, and what the rest could make of its values; None =
            complete judgments.
    """

    names: tuple[str, ...]
    kinds: tuple[FloorKind, ...]
    values: FloatArray
    trials: tuple[FloatArray | None, ...]
    are_shared: tuple[bool, ...]
    bounds: tuple[QueryBounds | None, ...]

    def select_queries(self, mask: BoolArray) -> UntunedValues:
        """The same on the queries where ``mask``, shape (Q,), is true."""
        trials = tuple(select_trials(each, mask) for each in self.trials)
        bounds = tuple(each and each.select_queries(mask) for each in self.bounds)
        return replace(self, values=self.values[:, mask], trials=trials, bounds=bounds)


def select_trials(trials: FloatArray | None, queries: BoolArray | IntArray) -> FloatArray | None:
    """Some queries of (T, Q) values; None = there is one trial."""
    return None if trials is None else trials[:, queries]


def load_all_lists(
    experiment: Experiment, dataset: Dataset, path: Path, progress: Progress
) -> Dataset:
    """The dataset with the lists of every system of the experiment.

    Args:
        experiment: The experiment.
        dataset: With the lists of the tuned system; taken where they are enough.
        path: Its ``dataset.yaml``.
        progress: Called as the work goes on.
    """
    systems = experiment.systems.values()
    runs = {name for system in systems for name in system.base_runs}
    rerankers = {name for system in systems for name in system.reranker_names}
    if runs <= set(dataset.runs) and rerankers <= set(dataset.rerankers):
        return dataset
    return load_lists(path, list(systems), progress)


def evaluate_untuned(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    objective: TuningObjective,
) -> UntunedValues:
    """Evaluate every other system of the experiment, and every source that a system reads.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        dataset: With every list of its systems.
        objective: What is tuned.

    Raises:
        FusionBenchError: A system does not fit the dataset.
    """
    task = prepare_dataset(experiment.model_copy(update=dict(ALL_JUDGED)), source, dataset)
    others = [s for name, s in experiment.systems.items() if name != objective.system.name]
    names = drop_final(task.runs.sources, task.runs.roles)
    alone = [System(name=name, runs=(name,)) for name in sorted(names)]
    known = [system.resolved_config for system in (*others, objective.system)]
    sources = [system for system in alone if system.resolved_config not in known]
    systems = [*others, *sources]
    scores = evaluate_trials(task, systems, [objective.measure])
    place = {query: q for q, query in enumerate(task.runs.queries)}
    order = np.array([place[query] for query in objective.runs.queries])
    kinds: list[FloorKind] = ["system" for _ in others]
    kinds += ["source" for _ in sources]
    values = np.array([score.values[0] for score in scores]).reshape(len(scores), len(place))
    tuned = task.trial_lists(objective.system)
    known_bounds = [find_trial_bounds(task, each, [objective.measure])[0] for each in systems]
    return UntunedValues(
        names=tuple(score.system for score in scores),
        kinds=tuple(kinds),
        values=values[:, order],
        trials=tuple(select_trials(trials_of(score.trials, 0), order) for score in scores),
        are_shared=tuple(not tuned.isdisjoint(task.trial_lists(each)) for each in systems),
        bounds=tuple(bounds and bounds.select_queries(order) for bounds in known_bounds),
    )


def judge_floor(
    untuned: UntunedValues,
    tuned: FloatArray,
    groups: Sequence[str],
    *,
    is_bounded: bool = False,
    min_gain: float,
    alpha: float,
    seed: int,
    tuned_trials: FloatArray | None = None,
) -> tuple[FloorRow, ...]:
    """Compare what nobody tuned with the tuned system; all of it is one family.

    Args:
        untuned: On the held-out queries.
        tuned: Shape (Q,), the same queries.
        groups: Shape (Q,): group ids.
        is_bounded: Values lie in [0, 1].
        min_gain: Differences below it are equivalent.
        alpha: Two-sided level of the family.
        seed: Of the sign flips.
        tuned_trials: Shape (T, Q): of the tuned system on each trial; None = there is one.

    Returns:
        The highest mean first.
    """
    if not untuned.names:
        return ()
    keys = tuple(groups)
    codes = number_by_appearance(keys)[0]
    family = [
        FamilyRow(
            paired_difference(values, tuned),
            keys,
            margin=min_gain,
            trial_terms=make_trial_terms(
                paired_sides(trials, tuned_trials, is_shared=is_shared), codes
            ),
        )
        for values, trials, is_shared in zip(
            untuned.values, untuned.trials, untuned.are_shared, strict=True
        )
    ]
    tested = max_t(family, seed=seed, alpha=alpha)
    rows = []
    for name, kind, values, row, result, bounds in zip(
        *(untuned.names, untuned.kinds, untuned.values, family, tested.rows, untuned.bounds),
        strict=True,
    ):
        low, high = clip_ends(result.low, result.high, is_bounded=is_bounded)
        changed = int(np.count_nonzero(row.difference))
        answer = decide_answer(result, changed=changed, alpha=alpha)
        rows.append(
            FloorRow(
                name=name,
                kind=kind,
                mean=float(values.mean()),
                difference=result.estimate.mean,
                low=low,
                high=high,
                p=result.p,
                answer=check_skew(answer, row.difference, codes, alpha=alpha)[0],
                bounds=bounds and bounds.record,
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.mean))
