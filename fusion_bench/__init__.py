"""Choose, tune and guard the step that fuses ranked lists and blends in a reranker.

The folder names are the pipeline, and data flows through it one way::

    load → align → normalize → fuse → blend → measure → compare → report
    files  arrays   per query    (N,)    (N,)   (M, Q)    deltas    pages, numbers

>>> from fusion_bench import Qrels, Run, System, align_runs, evaluate_systems, parse_measure
>>> qrels = Qrels.from_dict({"q1": {"d1": 1}})
>>> bm25 = Run.from_dict("bm25", {"q1": {"d2": 9.1, "d1": 7.4}})
>>> dense = Run.from_dict("dense", {"q1": {"d1": 0.8, "d3": 0.7}})
>>> runs = align_runs(qrels, [bm25, dense])
>>> rrf = System(name="rrf", runs=("bm25", "dense"))
>>> [scores] = evaluate_systems([rrf], runs, [parse_measure("nDCG@10")])
>>> scores.values.tolist()
[[1.0]]

Public names are imported when first asked for, so that nobody pays for what is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusion_bench._version import __version__
    from fusion_bench.data.aligned_runs import AlignedRuns
    from fusion_bench.data.alignment import align as align_runs
    from fusion_bench.data.read_options import ReadOptions
    from fusion_bench.data.records import Qrels, Query, Run
    from fusion_bench.errors import FusionBenchError
    from fusion_bench.evaluation.report_records import Report, read_report
    from fusion_bench.evaluation.run_experiment import run_experiment as run_experiment
    from fusion_bench.evaluation.scores import Scores
    from fusion_bench.evaluation.scores import evaluate_systems as evaluate_systems
    from fusion_bench.experiment.experiment import Experiment, read_experiment
    from fusion_bench.experiment.system import System
    from fusion_bench.io import Dataset, load_dataset, load_qrels, load_run
    from fusion_bench.measures import Measure, parse_measure
    from fusion_bench.stats.comparison import Comparison
    from fusion_bench.stats.comparison import compare_with_baseline as compare_systems

__all__ = [
    "AlignedRuns",
    "Comparison",
    "Dataset",
    "Experiment",
    "FusionBenchError",
    "Measure",
    "Qrels",
    "Query",
    "ReadOptions",
    "Report",
    "Run",
    "Scores",
    "System",
    "__version__",
    "align_runs",
    "compare_systems",
    "evaluate_systems",
    "load_dataset",
    "load_qrels",
    "load_run",
    "parse_measure",
    "read_experiment",
    "read_report",
    "run_experiment",
]

_HOME = {
    "AlignedRuns": "data.aligned_runs",
    "Comparison": "stats.comparison",
    "Dataset": "io",
    "Experiment": "experiment.experiment",
    "FusionBenchError": "errors",
    "Measure": "measures",
    "Qrels": "data.records",
    "Query": "data.records",
    "ReadOptions": "data.read_options",
    "Report": "evaluation.report_records",
    "Run": "data.records",
    "Scores": "evaluation.scores",
    "System": "experiment.system",
    "__version__": "_version",
    "align_runs": "data.alignment",
    "compare_systems": "stats.comparison",
    "evaluate_systems": "evaluation.scores",
    "load_dataset": "io",
    "load_qrels": "io",
    "load_run": "io",
    "parse_measure": "measures",
    "read_experiment": "experiment.experiment",
    "read_report": "evaluation.report_records",
    "run_experiment": "evaluation.run_experiment",
}
#: A function named as its module is public under a longer name: the module would hide it.
_INNER = {
    "align_runs": "align",
    "compare_systems": "compare_with_baseline",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fusion_bench' has no attribute {name!r}")
    return getattr(import_module(f"fusion_bench.{_HOME[name]}"), _INNER.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)
