"""Compare run files that no experiment names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.in_memory import make_dataset, make_experiment, name_dataset
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.run_experiment import run_on_datasets
from fusion_bench.io.file_layout import DEFAULT_LAYOUT, FileLayout
from fusion_bench.io.load_records import load_qrels, load_run


def compare_files(
    qrels: Path,
    runs: Mapping[str, Path],
    *,
    measures: Sequence[str],
    binary_relevance: int = 1,
    qrels_layout: FileLayout = DEFAULT_LAYOUT,
    run_layout: FileLayout = DEFAULT_LAYOUT,
    details: DetailsCollector | None = None,
) -> Report:
    """Compare run files with the first of them.

    Args:
        qrels: File of judgments.
        runs: Run files by the names of their systems. One is only measured.
        measures: Measure names, the primary one first.
        binary_relevance: Grade from which binary measures count.
        qrels_layout: How the judgments' file names its columns.
        run_layout: How the run files do.
        details: Collects what stands behind the values; None = nobody asks.

    Raises:
        DataError: A file breaks a rule.
    """
    dataset = make_dataset(
        name_dataset(qrels),
        load_qrels(qrels, layout=qrels_layout),
        {name: load_run(path, name=name, layout=run_layout) for name, path in runs.items()},
        qrels_path=qrels,
        paths=runs,
        layout=run_layout,
        binary_relevance=binary_relevance,
    )
    systems = {name: {"runs": [name]} for name in runs}
    experiment, source = make_experiment(
        "compare", systems, dataset=dataset.name, measures=list(measures)
    )
    return run_on_datasets(experiment, source, [dataset], details=details)
