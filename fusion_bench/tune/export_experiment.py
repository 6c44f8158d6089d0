"""The tuned system as an experiment that ``eval`` reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fusion_bench.experiment.experiment import Experiment
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.files.real_paths import resolve_path
from fusion_bench.util.formatting import format_number
from fusion_bench.util.yaml_text import format_yaml

#: The experiment's settings that stay.
KEPT = ("measures", "ties", "alpha", "correction", "min_gain", "resamples", "seed")
#: Where the dataset has no splits of its own.
CAVEAT = (
    "eval takes all queries, those it was tuned on as well: the comparison on held-out queries is "
    "in tuning.md."
)


def relocate_dataset(name: str, file: Path, folder: Path) -> str:
    """How an experiment in another folder names a dataset.

    Args:
        name: A dataset's name, or a path.
        file: The ``dataset.yaml`` that it stands for.
        folder: The other folder.

    Returns:
        A name as it is; instead of a relative path the path from the other folder.
    """
    given = Path(name)
    is_name = len(given.parts) == 1 and given.suffix not in {".yaml", ".yml"}
    if is_name or given.is_absolute():
        return name
    return os.path.relpath(resolve_path(file), resolve_path(folder))


def tuned_experiment(experiment: Experiment, report: TuningReport, dataset: str) -> str:
    """The default and the tuned system side by side, as YAML.

    Args:
        experiment: The tuned experiment.
        report: Of the tuning run.
        dataset: How the experiment names the dataset.
    """
    default = experiment.systems[report.system]
    name = f"{report.system} tuned"
    while name in experiment.systems:
        name += " again"
    data: dict[str, Any] = {
        "description": _describe(report),
        **({} if report.split_seed is None else {"caveat": CAVEAT}),
        "dataset": dataset,
        "baseline": report.system,
        **experiment.model_dump(mode="json", include=set(KEPT)),
        **experiment.model_dump(mode="json", include={"crag"}, exclude_none=True),
        "systems": {report.system: default.resolved_config, name: report.choice.config},
    }
    if report.per_type is not None:
        data["systems"][f"{name} by {report.per_type.field}"] = report.per_type.config
    return format_yaml(data)


def _describe(report: TuningReport) -> str:
    """The two systems and the verdict; with what unjudged documents say where they decide."""
    text = f"{report.system} as it was and as tuned on {report.dataset}: {report.verdict}"
    text += f"{_describe_look(report)}."
    if report.verdict == "unjudged decide" and report.unjudged is not None:
        text += f" Held out {format_number(report.held_out.difference, signed=True)}; "
        text += f"{report.unjudged.description}."
    return text


def _describe_look(report: TuningReport) -> str:
    look = report.look
    if look is None:
        return ""
    number = "looks not counted" if look.number is None else f"look {look.number}"
    return f" ({number}, one-sided level {look.level:.2g})"
