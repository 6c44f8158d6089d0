"""The floor of tuning: untuned systems and single sources on the held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fusion_bench.config.yaml_source import Source
from fusion_bench.data.final_lists import drop_final
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.evaluation.run_experiment import Progress, load_lists
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.tuning_records.floor import FloorKind, FloorRow
from fusion_bench.stats.answers import decide_answer
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.max_t import FamilyRow, max_t
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.gains import clip_ends


@dataclass(frozen=True, eq=False)
class UntunedValues:
    """What nobody tuned, on every query of an objective.

    Attributes:
        names: R systems and sources.
        kinds: What each is.
        values: Shape (R, Q), the measure that is tuned for.
    """

    names: tuple[str, ...]
    kinds: tuple[FloorKind, ...]
    values: FloatArray

    def select_queries(self, mask: BoolArray) -> UntunedValues:
        """The same on the queries where ``mask``, shape (Q,), is true."""
        return replace(self, values=self.values[:, mask])


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
    scores = evaluate_systems(
        [*map(task.fit_system, others), *sources],
        task.runs,
        [objective.measure],
        spaces=dataset.spaces,
        qrels=dataset.qrels,
    )
    place = {query: q for q, query in enumerate(task.runs.queries)}
    order = [place[query] for query in objective.runs.queries]
    kinds: list[FloorKind] = ["system" for _ in others]
    kinds += ["source" for _ in sources]
    values = np.array([score.values[0] for score in scores]).reshape(len(scores), len(place))
    return UntunedValues(tuple(score.system for score in scores), tuple(kinds), values[:, order])


def judge_floor(
    untuned: UntunedValues,
    tuned: FloatArray,
    groups: Sequence[str],
    *,
    is_bounded: bool = False,
    min_gain: float,
    alpha: float,
    seed: int,
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

    Returns:
        The highest mean first.
    """
    if not untuned.names:
        return ()
    keys = tuple(groups)
    family = [
        FamilyRow(paired_difference(values, tuned), keys, margin=min_gain)
        for values in untuned.values
    ]
    tested = max_t(family, seed=seed, alpha=alpha)
    rows = []
    for name, kind, values, row, result in zip(
        untuned.names, untuned.kinds, untuned.values, family, tested.rows, strict=True
    ):
        low, high = clip_ends(result.low, result.high, is_bounded=is_bounded)
        changed = int(np.count_nonzero(row.difference))
        rows.append(
            FloorRow(
                name=name,
                kind=kind,
                mean=float(values.mean()),
                difference=result.estimate.mean,
                low=low,
                high=high,
                p=result.p,
                answer=decide_answer(result, changed=changed, alpha=alpha),
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.mean))
