"""Refuses an option whose file would replace what the command reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.errors import ConfigError
from fusion_bench.util.files.real_paths import resolve_path

if TYPE_CHECKING:
    from fusion_bench.config.files.yaml_source import Source
    from fusion_bench.experiment.experiment import Experiment


def refuse_replaced_inputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]
) -> None:
    """Check before the work begins that no output is an input.

    Args:
        outputs: Option → its file; None = not given.
        inputs: Files and folders that the command reads.

    Raises:
        ConfigError: An output is one of them, or lies in one of them.
    """
    files = {option: resolve_path(path) for option, path in outputs.items() if path is not None}
    if not files:
        return
    for path in filter(None, inputs):
        for option, file in files.items():
            if file.is_relative_to(resolve_path(path)):
                raise ConfigError(
                    f"{option}: {outputs[option]} would replace an input of this command: name "
                    "another file"
                )


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
