"""Run the experiment of a project."""

from pathlib import Path

from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from tests.tiny import EXPERIMENT


def run(root: Path) -> Report:
    experiment, source = read_experiment(root / EXPERIMENT)
    return run_experiment(experiment, source, folders=[root / "datasets"])
