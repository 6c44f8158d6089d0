"""Choose, tune and guard the step that fuses ranked lists and blends in a reranker.

The folder names are the pipeline, and data flows through it one way::

    load → align → normalize → fuse → blend → measure → compare → report
    files  arrays   per query    (N,)    (N,)   (M, Q)    deltas    pages, numbers

>>> import fusion_bench as fb
>>> qrels = {"q1": {"d1": 1}, "q2": {"d3": 1}}
>>> bm25 = {"q1": {"d2": 9.1, "d1": 7.4}, "q2": {"d2": 5.0, "d3": 1.0}}
>>> dense = {"q1": {"d1": 0.8, "d3": 0.7}, "q2": {"d3": 0.9, "d1": 0.2}}
>>> fused = fb.fuse({"bm25": bm25, "dense": dense}, "rrf", k=60)
>>> comparisons = fb.compare(
...     qrels, {"bm25": bm25, "dense": dense, "fused": fused}, measures="RR@10"
... )
>>> {name: row["RR@10"] for name, row in comparisons.to_dict()["systems"].items()}
{'dense': 1.0, 'fused': 1.0, 'bm25': 0.5}

Public names are imported when first asked for, so that nobody pays for what is not used.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as in typing, whose import would take longer than all the rest

if TYPE_CHECKING:
    from fusion_bench._version import __version__ as __version__
    from fusion_bench.api.compare import align_runs as align_runs
    from fusion_bench.api.compare import compare as compare
    from fusion_bench.api.compare import evaluate_systems as evaluate_systems
    from fusion_bench.api.compare import parse_measure as parse_measure
    from fusion_bench.api.compare import run_experiment as run_experiment
    from fusion_bench.api.fuse import fuse as fuse
    from fusion_bench.api.fuse import rrf as rrf
    from fusion_bench.api.fuse import weighted as weighted
    from fusion_bench.api.inputs import load_dataset as load_dataset
    from fusion_bench.api.new_data import agreement as agreement
    from fusion_bench.api.new_data import documents_to_judge as documents_to_judge
    from fusion_bench.api.new_data import draw_queries as draw_queries
    from fusion_bench.api.new_data import estimate as estimate
    from fusion_bench.api.new_data import import_grades as import_grades
    from fusion_bench.api.new_data import new_dataset as new_dataset
    from fusion_bench.api.new_data import pool as pool
    from fusion_bench.api.new_data import pull as pull
    from fusion_bench.api.new_data import rerank as rerank
    from fusion_bench.api.new_data import sample_log as sample_log
    from fusion_bench.api.power import power as power
    from fusion_bench.api.results import Comparisons as Comparisons
    from fusion_bench.api.results import compare_reports as compare_reports
    from fusion_bench.api.results import page as page
    from fusion_bench.api.results import plot as plot
    from fusion_bench.api.results import tables as tables
    from fusion_bench.api.threshold import threshold as threshold
    from fusion_bench.api.tune import TuningResult as TuningResult
    from fusion_bench.api.tune import export as export
    from fusion_bench.api.tune import gate as gate
    from fusion_bench.api.tune import tune as tune
    from fusion_bench.campaign.client import ask_campaign as ask_campaign
    from fusion_bench.campaign.client import campaign_status as campaign_status
    from fusion_bench.data.aligned_runs import AlignedRuns as AlignedRuns
    from fusion_bench.data.qrels import Qrels as Qrels
    from fusion_bench.data.read_options import ReadOptions as ReadOptions
    from fusion_bench.data.records import Query as Query
    from fusion_bench.data.run import Run as Run
    from fusion_bench.errors import FusionBenchError as FusionBenchError
    from fusion_bench.evaluation.report_file import Report as Report
    from fusion_bench.evaluation.report_file import read_report as read_report
    from fusion_bench.experiment.experiment import Experiment as Experiment
    from fusion_bench.experiment.experiment import read_experiment as read_experiment
    from fusion_bench.experiment.system import System as System
    from fusion_bench.importers.public_collections import add_dataset as add_dataset
    from fusion_bench.io.dataset import Dataset as Dataset
    from fusion_bench.io.held_out import show_held_out as show_held_out
    from fusion_bench.io.load_records import load_qrels as load_qrels
    from fusion_bench.io.load_records import load_run as load_run
    from fusion_bench.io.raw_files import FileLayout as FileLayout
    from fusion_bench.measures import Measure as Measure
    from fusion_bench.ranking.system_scores import Scores as Scores
    from fusion_bench.serving.live.pipeline import Pipeline as Pipeline
    from fusion_bench.stats import comparison_family
    from fusion_bench.stats.comparison import Comparison as Comparison

    compare_systems = comparison_family.compare_with_baseline

#: Public name → its module, and its name there if that is another.
_HOME = {
    "AlignedRuns": "data.aligned_runs",
    "Comparison": "stats.comparison",
    "Comparisons": "api.results",
    "Dataset": "io.dataset",
    "Experiment": "experiment.experiment",
    "FileLayout": "io.raw_files",
    "FusionBenchError": "errors",
    "Measure": "measures",
    "Pipeline": "serving.live.pipeline",
    "Qrels": "data.qrels",
    "Query": "data.records",
    "ReadOptions": "data.read_options",
    "Report": "evaluation.report_file",
    "Run": "data.run",
    "Scores": "ranking.system_scores",
    "System": "experiment.system",
    "TuningResult": "api.tune",
    "__version__": "_version",
    "add_dataset": "importers.public_collections",
    "agreement": "api.new_data",
    "align_runs": "api.compare",
    "ask_campaign": "campaign.client",
    "campaign_status": "campaign.client",
    "compare": "api.compare",
    "compare_reports": "api.results",
    "compare_systems": "stats.comparison_family:compare_with_baseline",
    "documents_to_judge": "api.new_data",
    "draw_queries": "api.new_data",
    "estimate": "api.new_data",
    "evaluate_systems": "api.compare",
    "export": "api.tune",
    "fuse": "api.fuse",
    "gate": "api.tune",
    "import_grades": "api.new_data",
    "load_dataset": "api.inputs",
    "load_qrels": "io.load_records",
    "load_run": "io.load_records",
    "new_dataset": "api.new_data",
    "page": "api.results",
    "parse_measure": "api.compare",
    "plot": "api.results",
    "pool": "api.new_data",
    "power": "api.power",
    "pull": "api.new_data",
    "read_experiment": "experiment.experiment",
    "read_report": "evaluation.report_file",
    "rerank": "api.new_data",
    "rrf": "api.fuse",
    "run_experiment": "api.compare",
    "sample_log": "api.new_data",
    "show_held_out": "io.held_out",
    "tables": "api.results",
    "threshold": "api.threshold",
    "tune": "api.tune",
    "weighted": "api.fuse",
}
__all__ = list(_HOME)
#: What other libraries call something → where it is here.
_INSTEAD = {
    "evaluate": ": compare(qrels, runs) evaluates; evaluate_systems(…) gives values per query",
    "methods": ": 'fusion-bench methods' prints them",
    "optimize_fusion": "; did you mean 'tune'?",
    "Experiments": "; did you mean 'compare'?",
}


class _Package(ModuleType):
    """This package; the functions ``fuse``, ``tune``, … keep their names.

    When a subpackage is imported, the import system sets it as an attribute of its package. Here
    that would hide a function, or the hint of a name: subpackages of the same name are found in
    ``sys.modules`` alone.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and (name in _HOME or name in _INSTEAD)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


if not TYPE_CHECKING:  # type checkers know every name, and find a wrong one

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'fusion_bench' has no attribute {name!r}{_suggest(name)}")
        module, _, inner = _HOME[name].partition(":")
        path = f"fusion_bench.{module}"
        loaded = import_module(path) if path in sys.modules else _import_first(path)
        return getattr(loaded, inner or name)


def _import_first(path: str) -> ModuleType:
    """Import a module without a search for cycles: what an import makes stays, and is old at once.

    To freeze and unfreeze puts everything into the oldest generation, unless somebody else has
    frozen something. Otherwise the first collections of a comparison would go through it all.
    """
    from fusion_bench.util.environment import SHORT_WAITS

    is_collecting = gc.isenabled()
    gc.disable()
    try:
        with SHORT_WAITS:
            return import_module(path)
    finally:
        if is_collecting:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _suggest(name: str) -> str:
    """What was perhaps meant; empty for what the import system and tools look for."""
    if name.startswith("_"):
        return ""
    from fusion_bench.errors import did_you_mean

    return _INSTEAD.get(name) or did_you_mean(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
