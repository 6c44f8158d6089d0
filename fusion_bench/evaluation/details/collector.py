"""Collects what stands behind the values of a report, for its page or ``details.json``.

The lists of each system are looked at where they are measured; none is ranked again for that.

A report has the values; its details have ranks, terms, texts and what the sources contribute. They
are computed only where somebody asks for them: the terms of the detailed systems, and their values
on other lists, after the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.evaluation.details.relevant_ranks import Observer, RankCollector, list_relevant
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_file import Report
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.report_details import ReportDetails

#: Bytes of JSON that the details of all queries may have.
MAX_BYTES: Final = 20_000_000


@dataclass(frozen=True, eq=False)
class CollectedLists:
    """One collection: what its details are computed from.

    The dataset itself is not kept: the aligned runs have all of its lists.

    Attributes:
        name: The dataset.
        runs: Aligned, the Q evaluated queries.
        measures: The primary measure first.
        alpha: 1 − coverage of intervals.
        documents: Texts of the documents; None = the dataset has none.
        wanted: Names of systems to detail beside the best one, the baseline first.
        ranks: What was collected of the lists of each system.
        systems: By name, fitted.
    """

    name: str
    runs: AlignedRuns
    measures: tuple[Measure, ...]
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
            measures=tuple(task.measures),
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
        """Drop what was derived from the runs while systems were measured."""
        return replace(self, runs=replace(self.runs))


def _guarded(experiment: Experiment) -> Iterator[str]:
    """The systems that the gate guards and that tuning starts from."""
    if experiment.gate is not None and experiment.gated_system is not None:
        yield experiment.gated_system.name
    if experiment.tune is not None and experiment.tune.system is not None:
        yield experiment.tune.system


@dataclass(eq=False)
class DetailsCollector:
    """Give it to ``run_experiment``, then ask it for the details of the report that this made.

    It holds the aligned runs of every collection until it is forgotten, and what was derived from
    those of the last one.

    Attributes:
        names: Systems to detail beside the baseline, the best, the guarded and the tuned one.
        limit: About how many bytes of JSON the ranks, top documents and their texts may have.
    """

    names: tuple[str, ...] = ()
    limit: int = MAX_BYTES
    _collections: list[CollectedLists] = field(default_factory=list, init=False, repr=False)

    def check_names(self, experiment: Experiment, where: str) -> None:
        """Refuse names of systems that the experiment does not have.

        Args:
            experiment: The experiment.
            where: Prefix of a message.

        Raises:
            UnknownNameError: No such system.
        """
        for name in self.names:
            experiment.find_system(name, where)

    def add_collection(self, task: EvaluationSet) -> Callable[[System], Observer]:
        """What gives an observer of each fitted system of the next collection."""
        self.forget_views()
        self._collections.append(CollectedLists.of_task(task, self.names))
        return self._collections[-1].observe

    def forget_views(self) -> None:
        """Hold the aligned runs alone; what is derived from them is then computed again."""
        self._collections = [each.without_views() for each in self._collections]

    def make_details(self, report: Report) -> ReportDetails:
        """The details of a report.

        Args:
            report: The one that ``run_experiment`` made with this collector.
        """
        from fusion_bench.evaluation.details.report_details import make_report_details  # seldom

        return make_report_details(report, self._collections, self.limit)
