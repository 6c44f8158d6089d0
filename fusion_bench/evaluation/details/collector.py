"""Collects what details need while an experiment runs, and computes them once they are asked for.

The lists of each system are looked at where they are measured; none is ranked again for that. Only
the terms of the detailed systems, and their values on other lists, are computed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.details.collected_lists import CollectedLists
from fusion_bench.evaluation.details.rank_collector import Observer
from fusion_bench.evaluation.details.records import ReportDetails
from fusion_bench.evaluation.details.size_limit import MAX_BYTES, choose_queries
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System


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
            if name not in experiment.systems:
                raise UnknownNameError("system", name, experiment.systems, where=where)

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
        tables = [
            lists.list_tables(collection)
            for lists, collection in zip(self._collections, report.collections, strict=True)
        ]
        keeps = choose_queries([table.sizes for table in tables], self.limit)
        return ReportDetails(
            report.name,
            tuple(
                lists.make_details(table, keep)
                for lists, table, keep in zip(self._collections, tables, keeps, strict=True)
            ),
        )


def observers(
    details: DetailsCollector | None, task: EvaluationSet
) -> Callable[[System], Observer | None]:
    """What gives the observer of each fitted system; None where nobody wants details."""
    return (lambda _: None) if details is None else details.add_collection(task)
