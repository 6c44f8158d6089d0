"""The front of the default experiment, for docs/tuning.md: its table, its sentences, its picture.

The reranker of ``attack`` is a small model of this project's own, so its price and time are made
up: 2 per 1,000 candidates, 4 ms each.

    python -m benchmarks.front_example
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.collections import ATTACK
from benchmarks.page import put
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.tune_settings import EffortSettings
from fusion_bench.report.markdown import format_table
from fusion_bench.report.plots import render_png
from fusion_bench.report.plots.pareto import draw_pareto_front
from fusion_bench.report.tuning.pareto_findings import pareto_texts
from fusion_bench.report.tuning.pareto_table import pareto_table
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.tune.run import TuningRun
from fusion_bench.tune.space.open_objective import create_objective, load_tuning_dataset
from fusion_bench.util.atomic_files import replace_file

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "reports" / "pictures" / "front.png"


def tuned() -> TuningReport:
    """What ``make tune`` finds, with a price and a time, and without folds."""
    experiment, source = read_experiment(ROOT / "experiments" / "default.yaml")
    if experiment.tune is None:
        raise SystemExit("experiments/default.yaml: has no 'tune'")
    effort = EffortSettings(price=2.0, seconds=0.004)
    tuning = experiment.tune.model_copy(update={"folds": 0, "effort": effort})
    dataset = load_tuning_dataset(experiment, source, tuning, ATTACK)
    problem = create_objective(experiment, source, tuning, dataset)
    with tempfile.TemporaryDirectory() as folder:
        run = TuningRun(problem, dataset, tuning, Path(folder))
        return run.run("default", report_provenance(experiment, source))


def main() -> None:
    """Renew the page and the picture."""
    found = tuned()
    if found.front is None:
        raise SystemExit("no front was found: the default experiment has no reranker")
    lines = list(format_table(pareto_table(found, found.front)))
    put("front-example", "\n".join([*lines, "", f"> {' '.join(pareto_texts(found, found.front))}"]))
    replace_file(PICTURE, render_png(draw_pareto_front(found, found.front)))


if __name__ == "__main__":
    main()
