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
    from fusion_bench._version import __version__ as __version__
    from fusion_bench.data import alignment
    from fusion_bench.data.aligned_runs import AlignedRuns as AlignedRuns
    from fusion_bench.data.read_options import ReadOptions as ReadOptions
    from fusion_bench.data.records import Qrels as Qrels
    from fusion_bench.data.records import Query as Query
    from fusion_bench.data.records import Run as Run
    from fusion_bench.errors import FusionBenchError as FusionBenchError
    from fusion_bench.evaluation.report_records import Report as Report
    from fusion_bench.evaluation.report_records import read_report as read_report
    from fusion_bench.evaluation.run_experiment import run_experiment as run_experiment
    from fusion_bench.evaluation.scores import Scores as Scores
    from fusion_bench.evaluation.scores import evaluate_systems as evaluate_systems
    from fusion_bench.experiment.experiment import Experiment as Experiment
    from fusion_bench.experiment.experiment import read_experiment as read_experiment
    from fusion_bench.experiment.system import System as System
    from fusion_bench.io.dataset import Dataset as Dataset
    from fusion_bench.io.dataset import load_dataset as load_dataset
    from fusion_bench.io.load_records import load_qrels as load_qrels
    from fusion_bench.io.load_records import load_run as load_run
    from fusion_bench.measures import Measure as Measure
    from fusion_bench.measures import parse_measure as parse_measure
    from fusion_bench.stats import comparison
    from fusion_bench.stats.comparison import Comparison as Comparison

    align_runs = alignment.align
    compare_systems = comparison.compare_with_baseline

#: Public name → its module, and its name there if that is another.
_HOME = {
    "AlignedRuns": "data.aligned_runs",
    "Comparison": "stats.comparison",
    "Dataset": "io.dataset",
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
    "align_runs": "data.alignment:align",
    "compare_systems": "stats.comparison:compare_with_baseline",
    "evaluate_systems": "evaluation.scores",
    "load_dataset": "io.dataset",
    "load_qrels": "io.load_records",
    "load_run": "io.load_records",
    "parse_measure": "measures",
    "read_experiment": "experiment.experiment",
    "read_report": "evaluation.report_records",
    "run_experiment": "evaluation.run_experiment",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fusion_bench' has no attribute {name!r}")
    module, _, inner = _HOME[name].partition(":")
    return getattr(import_module(f"fusion_bench.{module}"), inner or name)


def __dir__() -> list[str]:
    return sorted(__all__)
