"""Compare systems on judged queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fusion_bench.api.inputs.datasets import DATA_OPTIONS, read_dataset
from fusion_bench.api.inputs.records import list_measures
from fusion_bench.api.inputs.systems import name_systems
from fusion_bench.api.results.comparisons import Comparisons
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.evaluation.run_experiment import run_on_datasets
from fusion_bench.experiment.defaults import DEFAULT_MEASURES
from fusion_bench.lint import describe_dataset, lint_experiment


def compare(
    qrels: object,
    runs: object = None,
    systems: object = None,
    measures: object = DEFAULT_MEASURES,
    *,
    baseline: str | None = None,
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    detail: Collection[str] = (),
    **options: Any,  # noqa: ANN401 - the models check them
) -> Comparisons:
    """Compare systems with a baseline: means, paired differences, intervals, adjusted p-values.

    Args:
        qrels: Judgments, or a dataset: its name, its path, or a ``Dataset``. Judgments are a path,
            a dictionary, a data frame, ``Qrels`` of this package or of ranx, or rows of
            ir_measures or ir_datasets.
        runs: ``{name: run}``, a list of runs, or one; of a dataset, the names of those to use (all
            by default).
        systems: ``{name: system}``, a list of systems, or one; each run alone by default. A system
            is a method's or a run's name, ``(method, parameters)``, what ``rrf(…)`` or
            ``weighted(…)`` return, keys as in YAML, or a ``System``.
        measures: Names, or objects of ir_measures; the first one decides.
        baseline: The system that the others are compared with; the first by default.
        rerankers: Rerank lists by name, for systems with a ``blend``.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types, groups and splits: a path, or ``{id: …}``.
        detail: Systems whose top documents ``.details()`` lists too, beside the baseline and the
            best one.
        options: Keys of an experiment (``alpha``, ``correction``, ``min_gain``, ``resamples``,
            ``seed``, ``ties``, ``split``, ``query_type``), and of a dataset (``binary_relevance``,
            ``groups``, ``judgments``).

    Raises:
        FusionBenchError: Something breaks a rule; says what.

    >>> qrels = {"q1": {"d1": 1}, "q2": {"d3": 1}}
    >>> bm25 = {"q1": {"d2": 9.1, "d1": 7.4}, "q2": {"d3": 5.0, "d2": 1.0}}
    >>> dense = {"q1": {"d1": 0.8, "d3": 0.7}, "q2": {"d3": 0.9, "d1": 0.2}}
    >>> comparisons = compare(qrels, {"bm25": bm25, "dense": dense},
    ...                       {"bm25": "bm25", "rrf": ("rrf", {"k": 10})}, "RR@10")
    >>> comparisons.to_pandas()[["system", "RR@10", "difference"]]
      system  RR@10  difference
    0    rrf   1.00        0.25
    1   bm25   0.75         NaN
    """
    data = {key: options.pop(key) for key in DATA_OPTIONS & set(options)}
    dataset = read_dataset(
        qrels, runs, rerankers=rerankers, score_spaces=score_spaces, queries=queries, **data
    )
    experiment, source = make_experiment(
        "compare",
        name_systems(systems, dataset.runs),
        dataset=dataset.name,
        baseline=baseline,
        measures=list_measures(DEFAULT_MEASURES if measures is None else measures),
        **options,
    )
    roles = {name: run.roles for name, run in dataset.runs.items()}
    experiment.check_datasets(roles, tuple(dataset.rerankers), source)
    collector = DetailsCollector(tuple(detail))
    collector.check_names(experiment, "compare: detail")
    report = run_on_datasets(experiment, source, [dataset], details=collector)
    if any(system.class_key is not None for system in experiment.systems.values()):
        findings = lint_experiment(experiment, source, [describe_dataset(dataset)])
        report = report.model_copy(update={"lint": findings})
    collector.forget_views()
    return Comparisons(report.with_lazy_details(collector.make_details))
