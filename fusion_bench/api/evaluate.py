"""The steps of a comparison one by one, on inputs in any form."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fusion_bench.api.inputs.records import list_measures, read_qrels, read_queries, read_runs
from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation import run_experiment as experiments
from fusion_bench.evaluation import scores
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.experiment.v1_fallback import apply_switch
from fusion_bench.io.dataset_search import find_folders
from fusion_bench.lint import check_ignored, lint_datasets
from fusion_bench.measures import Measure
from fusion_bench.measures import parse_measure as parse_name


def align_runs(
    qrels: object,
    runs: object,
    *,
    rerankers: object = None,
    queries: object = None,
    ties: Ties = "trec",
    complete: bool = False,
) -> AlignedRuns:
    """Put runs, rerank lists and judgments on one set of candidates.

    Args:
        qrels: Judgments in any form that ``compare`` takes.
        runs: ``{name: run}``, a list of runs, or one.
        rerankers: The same for rerank lists.
        queries: Types and groups, by query id.
        ties: The tie rule.
        complete: The judgments are complete: a document that is not listed is judged 0.

    Raises:
        FusionBenchError: Something breaks a rule; says what.

    >>> align_runs({"q1": {"d1": 1}}, [{"q1": {"d2": 2.0}}, {"q1": {"d1": 0.7}}])
    AlignedRuns(1 query, 2 candidates, sources: run1, run2)
    """
    return align(
        read_qrels(qrels),
        list(read_runs(runs).values()),
        rerankers=[] if rerankers is None else list(read_runs(rerankers).values()),
        queries=read_queries(queries),
        ties=ties,
        complete=complete,
    )


def parse_measure(measure: object, *, binary_relevance: int = 1) -> Measure:
    """A measure by its name, or one of ir_measures.

    Args:
        measure: Such as ``"nDCG@10"``, or ``ir_measures.nDCG @ 10``.
        binary_relevance: Grade from which a document is relevant to binary measures without
            ``rel``.

    Raises:
        ConfigError: There is none of that name, or an option that it does not take.

    >>> parse_measure("RR@10").name
    'RR@10'
    """
    [name] = list_measures(measure)
    return parse_name(name, binary_relevance=binary_relevance)


def evaluate_systems(
    systems: System | Sequence[System],
    runs: AlignedRuns,
    measures: object,
    *,
    spaces: Mapping[str, ScoreSpace] | None = None,
    qrels: Qrels | None = None,
    threads: int | None = None,
) -> tuple[scores.Scores, ...]:
    """Evaluate any number of systems on the same aligned runs.

    Args:
        systems: One or several.
        runs: Aligned runs.
        measures: One or several: names, measures of this package or of ir_measures.
        spaces: Score space of each rerank list.
        qrels: The judgments; only measures that ir_measures computes need them.
        threads: How many may work on many queries; None = as ``FUSION_BENCH_THREADS`` says.

    Returns:
        One ``Scores`` per system, in the same order.

    Raises:
        ConfigError: Nothing is judged.

    >>> runs = align_runs({"q1": {"d1": 1}}, {"a": {"q1": {"d2": 2.0}}, "b": {"q1": {"d1": 0.7}}})
    >>> [scores] = evaluate_systems(System("rrf", ["a", "b"]), runs, "RR@10")
    >>> scores.to_dict()
    {'RR@10': {'q1': 0.5}}
    """
    listed = measures if isinstance(measures, list | tuple) else [measures]
    parsed = [m if isinstance(m, Measure) else parse_measure(m) for m in listed]
    given = [systems] if isinstance(systems, System) else systems
    chosen = [apply_switch(system) for system in given]
    if not runs.judged.any() and not len(runs.ideal_grades):
        raise ConfigError("runs: nothing is judged, so there is nothing to measure: add judgments")
    return scores.evaluate_systems(
        chosen, runs, parsed, spaces=spaces, qrels=qrels, threads=threads
    )


def run_experiment(
    experiment: Experiment | str | os.PathLike[str],
    source: Source | None = None,
    *,
    folders: Collection[str | os.PathLike[str]] | None = None,
    split: str | None = None,
    query_type: str | None = None,
    where: Mapping[str, str | Collection[str]] | None = None,
    cache: bool = True,
    detail: Collection[str] = (),
) -> Report:
    """Run an experiment, as ``fusion-bench eval`` does.

    Args:
        experiment: Its file, or what ``read_experiment`` gave.
        source: The second of what ``read_experiment`` gave.
        folders: Where named datasets live; by default ``datasets`` beside the experiment's folder,
            here, and in the folders above.
        split: Instead of the experiment's own.
        query_type: Instead of the experiment's own.
        where: Values that fields of the queries must have, beside the experiment's own:
            ``{"language": "ja"}``.
        cache: Whether what was read before may be taken from the cache beside a dataset.
        detail: Systems whose top documents ``.details()`` lists too, beside the baseline, the
            best, the guarded and the tuned one.

    Raises:
        FusionBenchError: Whatever is wrong with the experiment or its data.
    """
    if not isinstance(experiment, Experiment):
        experiment, source = read_experiment(Path(experiment))
    origin = source or Source(Path("experiment"), experiment.model_dump(mode="json"))
    check_ignored(experiment, origin)
    places = find_folders(folders or None, origin.path)
    collector = DetailsCollector(tuple(detail))
    report = experiments.run_experiment(
        experiment,
        origin,
        folders=places,
        split=split,
        query_type=query_type,
        where={k: (v,) if isinstance(v, str) else tuple(v) for k, v in (where or {}).items()},
        cache=cache,
        details=collector,
    )
    report = report.model_copy(update={"lint": lint_datasets(experiment, origin, places)})
    collector.forget_views()
    return report.with_lazy_details(collector.make_details)
