"""What is kept of one collection until its details are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.details.depth_curve import measure_depths
from fusion_bench.evaluation.details.detailed_set import DetailedSet
from fusion_bench.evaluation.details.leave_one_out import leave_sources_out
from fusion_bench.evaluation.details.rank_collector import Observer, RankCollector
from fusion_bench.evaluation.details.records import CollectionDetails
from fusion_bench.evaluation.details.relevant_documents import list_relevant
from fusion_bench.evaluation.details.relevant_ranks import RelevantRanks, make_relevant_ranks
from fusion_bench.evaluation.details.size_limit import QuerySizes, estimate_sizes
from fusion_bench.evaluation.details.source_overlap import measure_overlap
from fusion_bench.evaluation.details.texts import TEXT_LENGTH, document_texts, query_texts
from fusion_bench.evaluation.details.top_documents import TopDocuments, list_top_documents
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure


class DetailTables(NamedTuple):
    """The tables of all queries of one collection.

    Attributes:
        detailed: The detailed systems.
        relevant: Ranks of the relevant documents.
        top: The first documents of each detailed system.
        sizes: How large they are, by query.
    """

    detailed: DetailedSet
    relevant: RelevantRanks
    top: tuple[TopDocuments, ...]
    sizes: QuerySizes


@dataclass(frozen=True, eq=False)
class CollectedLists:
    """One collection: what its details are computed from.

    The dataset itself is not kept: the aligned runs have all of its lists.

    Attributes:
        name: The dataset.
        runs: Aligned, the Q evaluated queries.
        measure: The primary measure.
        spaces: Score space of each rerank list.
        qrels: The judgments.
        documents: Texts of the documents; None = the dataset has none.
        groups: Shape (Q,): codes of the groups.
        alpha: 1 − coverage of intervals.
        wanted: Names of systems to detail beside the best one, the baseline first.
        ranks: What was collected of the lists of each system.
        systems: By name, fitted.
    """

    name: str
    runs: AlignedRuns
    measure: Measure
    spaces: Mapping[str, ScoreSpace]
    qrels: Qrels
    documents: Path | None
    groups: IntArray
    alpha: float
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
        dataset, runs = task.dataset, task.runs
        relevant = list_relevant(runs, dataset.qrels, 1)
        return cls(
            name=dataset.spec.name,
            runs=runs,
            measure=task.measures[0],
            spaces=dataset.spaces,
            qrels=dataset.qrels,
            documents=dataset.documents,
            groups=task.groups,
            alpha=task.experiment.alpha,
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

    def list_tables(self, collection: Collection) -> DetailTables:
        """The tables of all queries.

        Args:
            collection: The record of this collection.
        """
        detailed = self._detail(collection)
        relevant = make_relevant_ranks(self.runs, self.ranks.relevant, self.ranks.ranks)
        top = tuple(
            list_top_documents(system, self.runs, self.ranks.tops[system.name], self.spaces)
            for system in detailed.systems
        )
        excerpt = 0 if self.documents is None else TEXT_LENGTH
        sizes = estimate_sizes(relevant, top, excerpt)
        return DetailTables(detailed, relevant, top, QuerySizes(sizes, detailed.differences))

    def make_details(self, tables: DetailTables, keep: BoolArray) -> CollectionDetails:
        """The record.

        Args:
            tables: Of all queries.
            keep: Shape (Q,): the queries that keep their rows.
        """
        relevant = tables.relevant.keep_queries(keep)
        top = tuple(each.keep_queries(keep) for each in tables.top)
        shown = {*relevant.documents, *(name for each in top for name in each.documents)}
        return CollectionDetails(
            name=self.name,
            queries=self.runs.queries,
            texts=query_texts(self.runs),
            detailed=tuple(system.name for system in tables.detailed.systems),
            kept_queries=np.flatnonzero(keep),
            relevant=relevant,
            unjudged=dict(self.ranks.unjudged),
            top=top,
            document_texts=document_texts(self.documents, shown),
            overlap=measure_overlap(self.runs, tables.relevant),
            leave_one_out=leave_sources_out(tables.detailed, self.runs),
            depth_curve=measure_depths(tables.detailed, self.runs),
        )

    def _detail(self, collection: Collection) -> DetailedSet:
        first, *rest = self.wanted
        names = dict.fromkeys((first, _best_system(collection), *rest))
        primary = collection.primary_measure
        results = {name: collection.system(name).measures[primary] for name in names}
        values: dict[str, FloatArray] = {  # the runs are those of the first trial
            name: np.array(each.trials[0] if each.trials else each.values, dtype=np.float64)
            for name, each in results.items()
        }
        return DetailedSet(
            systems=tuple(self.systems[name] for name in names),
            values=values,
            measure=self.measure,
            spaces=self.spaces,
            qrels=self.qrels,
            groups=self.groups,
            alpha=self.alpha,
        )


def _best_system(collection: Collection) -> str:
    """The best system that is shown to be better, else that of the highest mean."""
    best = collection.best_improvement
    return collection.ranked_systems[0].name if best is None else best.candidate


def _guarded(experiment: Experiment) -> Iterator[str]:
    """The systems that the gate guards and that tuning starts from."""
    if experiment.gate is not None and experiment.gated_system is not None:
        yield experiment.gated_system.name
    if experiment.tune is not None and experiment.tune.system is not None:
        yield experiment.tune.system
