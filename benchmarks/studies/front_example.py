"""The Pareto front of the default experiment in docs/studies/tuning.md: table, findings, picture.

The reranker of ``attack`` has no price. The example assumes 2 per 1,000 candidates and 4 ms each.

    python -m benchmarks.studies.front_example
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.collections import ATTACK
from benchmarks.studies.study import PAGE, write_table
from benchmarks.table import format_rows, keep_columns, read_rows, write_csv
from fusion_bench.data.qrels import Qrels
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import EffortSettings
from fusion_bench.report.markdown import format_table
from fusion_bench.report.plots import render_png
from fusion_bench.report.plots.tuning import draw_pareto_front
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.report.tuning_tables import pareto_table
from fusion_bench.report.tuning_texts import pareto_texts
from fusion_bench.tune.objective import create_objective, load_tuning_dataset
from fusion_bench.tune.tuning_run import TuningRun
from fusion_bench.util.files import replace_file

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "reports" / "pictures" / "front.png"


#: Columns of the page; the CSV has all.
COLUMNS = ("rerank depth", "nDCG@10, tuning", "held out", "held out: - default", "note")
#: With ``--toy``, the share of the queries.
TOY_SHARE = 40


def tune_example(*, toy: bool = False) -> TuningReport:
    """The report of ``make tune`` with a price and a time, without cross-validation."""
    experiment, source = read_experiment(ROOT / "experiments" / "default.yaml")
    if experiment.tune is None:
        raise SystemExit("experiments/default.yaml: has no 'tune'")
    effort = EffortSettings(price=2.0, seconds=0.004)
    trials = 6 if toy else experiment.tune.trials
    changes = {"folds": 0, "effort": effort, "trials": trials}
    tuning = experiment.tune.model_copy(update=changes)
    dataset = load_tuning_dataset(experiment, source, tuning, ATTACK)
    if toy:
        qrels = dict(list(dataset.qrels.to_dict().items())[::TOY_SHARE])
        dataset = replace(dataset, qrels=Qrels.from_dict(qrels))
    objective = create_objective(experiment, source, tuning, dataset)
    with tempfile.TemporaryDirectory() as folder:
        run = TuningRun(objective, dataset, tuning, Path(folder))
        return run.run("default", report_provenance(experiment, source))


def main(arguments: Sequence[str] | None = None) -> None:
    """Renew the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="few queries and trials; write nothing")
    options = parser.parse_args(arguments)
    report = tune_example(toy=options.toy)
    if report.front is None:
        raise SystemExit("experiments/default.yaml: the tuned system has no reranker")
    rows = read_rows("\n".join(format_table(pareto_table(report, report.front))))
    table = format_rows(keep_columns(rows, COLUMNS))
    text = f"> {' '.join(pareto_texts(report, report.front))}"
    picture = render_png(draw_pareto_front(report, report.front))
    if options.toy:
        print(table, text, sep="\n\n")
    else:
        link = write_csv(PAGE, "front", rows)
        write_table("front-example", f"{table}\n\n{link}\n\n{text}")
        replace_file(PICTURE, picture)


if __name__ == "__main__":
    main()
