"""The lists of one collection that the details of a report are computed from.

The lists of each system are looked at where they are measured; none is ranked again for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.evaluation.details.relevant_ranks import Observer, RankCollector, list_relevant
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure


@dataclass(frozen=True, eq=False)
class CollectedLists:
    """One collection: what its details are computed from.

    The dataset itself is not kept: the aligned runs have all of its lists.

    Attributes:
        name: The dataset.
        runs: Aligned, the Q evaluated queries.
        measure: The primary measure.
        groups: Shape (Q,): codes of the groups.
        alpha: 1 − coverage of intervals.
        documents: Texts of the documents; None = the dataset has none.
        wanted: Names of systems to detail beside the best one, the baseline first.
        ranks: What was collected of the lists of each system.
        systems: By name, fitted.
    """

    name: str
    runs: AlignedRuns
    measure: Measure
    groups: IntArray
    alpha: float
    documents: Path | None
    wanted: tuple[str, ...]
    ranks: RankCollector
    systems: dict[str, System] = field(default_factory=dict)

    @classmethod
    def of_task(cls, task: EvaluationSet, names: tuple[str, ...]) -> CollectedLists:
        """A collection whose systems are still to be observed.

        Args:
            task: The collection.
            names: Systems to detail.
        """
        dataset, runs = task.dataset, task.runs.repeats[0]
        relevant = list_relevant(runs, dataset.qrels, 1)
        return cls(
            name=dataset.spec.name,
            runs=runs,
            measure=task.measures[0],
            groups=task.groups,
            alpha=task.experiment.alpha,
            documents=dataset.documents,
            wanted=(task.experiment.baseline, *_guarded(task.experiment), *names),
            ranks=RankCollector(runs, relevant),
        )

    def observe(self, system: System) -> Observer:
        """What to call with the lists of a fitted system."""
        self.systems[system.name] = system
        return self.ranks.observe(system.name)

    def without_views(self) -> CollectedLists:
        """The same without what was derived from the runs while systems were measured."""
        return replace(self, runs=replace(self.runs))


def _guarded(experiment: Experiment) -> Iterator[str]:
    """The systems that the gate guards and that tuning starts from."""
    if experiment.gate is not None and experiment.gated_system is not None:
        yield experiment.gated_system.name
    if experiment.tune is not None and experiment.tune.system is not None:
        yield experiment.tune.system
