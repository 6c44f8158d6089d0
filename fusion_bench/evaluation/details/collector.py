"""Collects what stands behind the values of a report, for its page or ``details.json``.

The lists of each system are looked at where they are measured; none is ranked again for that.

A report has the values; its details have ranks, terms, texts and what the sources contribute. They
are computed only where somebody asks for them: the terms of the detailed systems, and their values
on other lists, after the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fusion_bench.evaluation.details.relevant_ranks import CollectedLists, Observer
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_file import Report
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.report_details import ReportDetails

#: Bytes of JSON that the details of all queries may have.
MAX_BYTES: Final = 20_000_000


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

        return make_report_details(report.name, report.collections, self._collections, self.limit)
