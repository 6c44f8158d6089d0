"""The files that a command on an experiment reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusion_bench.config.files.yaml_source import Source
    from fusion_bench.experiment.experiment import Experiment


def list_experiment_inputs(
    experiment: Experiment, source: Source, folders: Iterable[Path]
) -> Iterator[Path]:
    """The file of an experiment, and those of its datasets.

    Raises:
        FusionBenchError: A dataset is not there, or its ``dataset.yaml`` breaks a rule.
    """
    from fusion_bench.evaluation.run_experiment import find_datasets
    from fusion_bench.io.dataset_config import read_spec

    yield source.path
    for _, file in find_datasets(experiment, source, tuple(folders)):
        yield file
        yield from read_spec(file)[0].file_paths(file.parent)
