"""Draw the queries that people judge, from those that a machine graded."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.query_sample import draw_queries
from fusion_bench.evaluation.run_experiment import Progress, ignore_progress
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.grades.system_values import load_graded_dataset, measure_systems
from fusion_bench.io.judgments.load_judge import load_judge


def draw_sample(
    experiment: Experiment,
    source: Source,
    *,
    machine: str,
    count: int,
    seed: int,
    folders: Collection[Path],
    dataset: str | None = None,
    progress: Progress = ignore_progress,
) -> tuple[str, ...]:
    """Ids of queries to judge, a random sample of those that an experiment evaluates.

    Args:
        experiment: Says the split and the conditions of the queries.
        source: Where it was read from.
        machine: The judge who graded all queries; ``qrels`` = the judgments.
        count: How many; a larger number adds to the sample of a smaller one.
        seed: Another one draws another sample.
        folders: Where named datasets live.
        dataset: As the experiment names it; None = its only one.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: A name is unknown, or there are not so many queries.
    """
    chosen, loaded = load_graded_dataset(
        experiment, source, folders=folders, systems=(), dataset=dataset, progress=progress
    )
    graded = measure_systems(chosen, source, loaded, machine, load_judge(loaded, machine))
    return draw_queries(graded.queries, count, seed=seed)
