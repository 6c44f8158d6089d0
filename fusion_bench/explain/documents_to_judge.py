"""What to judge next: the unjudged documents in the first ranks of some systems."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusion_bench.checks.unjudged import UNJUDGED_DEPTH
from fusion_bench.config.yaml_files import Source
from fusion_bench.evaluation.run_experiment import prepare_datasets, select_systems
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.ranking.final_lists import list_parts
from fusion_bench.util.formatting import Progress, ignore_progress


@dataclass(frozen=True)
class UnjudgedDocument:
    """A document without a judgment that some system returns.

    Attributes:
        dataset: The dataset.
        query: Id of the query.
        document: Its id.
        best_rank: Its highest rank in any system's list.
        systems: The systems that return it, in the experiment's order.
    """

    dataset: str
    query: str
    document: str
    best_rank: int
    systems: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """Dataset, query, document, best rank and the systems, as a table has them."""
        rank, systems = str(self.best_rank), ", ".join(self.systems)
        return (self.dataset, self.query, self.document, rank, systems)


def list_unjudged_documents(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    depth: int = UNJUDGED_DEPTH,
    progress: Progress = ignore_progress,
) -> list[UnjudgedDocument]:
    """The unjudged documents of an experiment's systems, dataset by dataset.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        systems: Names of the systems, beside the baseline; empty = all.
        dataset: As the experiment names it; by default each of its datasets.
        depth: The greatest rank that counts.
        progress: Called as the work goes on.

    Returns:
        In each dataset the highest rank first, then what most systems return. Of complete
        judgments nothing.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    chosen = select_systems(experiment, systems, dataset)
    tasks = prepare_datasets(chosen, source, folders=folders, progress=progress)
    unjudged = []
    for task in tasks:
        ranks: dict[tuple[int, int], list[tuple[int, str]]] = {}
        runs = task.runs
        for name, system in task.experiment.systems.items():
            for index, view, positions in list_parts(task.fit_system(system), runs):
                shown = np.flatnonzero((positions > 0) & (positions <= depth) & ~view.judged)
                columns = (index[view.query_index[shown]], view.documents[shown], positions[shown])
                for query, document, rank in zip(*(each.tolist() for each in columns), strict=True):
                    ranks.setdefault((query, document), []).append((rank, name))
        rows = sorted(
            (min(places)[0], -len(places), *pair, tuple(name for _, name in places))
            for pair, places in ranks.items()
        )
        unjudged += [
            UnjudgedDocument(
                task.dataset.name, runs.queries[query], runs.vocabulary[document], best_rank, names
            )
            for best_rank, _, query, document, names in rows
        ]
    return unjudged
