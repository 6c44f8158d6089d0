"""Compare systems on judged queries, at once or step by step, on inputs in any form."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fusion_bench.api import inputs
from fusion_bench.api.fuse import name_systems, skips_lists_unasked
from fusion_bench.api.results import Comparisons
from fusion_bench.config.options import allow_obstacles
from fusion_bench.config.plugin_files import loaded_plugins
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation import run_experiment as experiments
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_on_datasets
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.experiment.experiment import Experiment, apply_switch, read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset_config import find_folders
from fusion_bench.measures import Measure
from fusion_bench.measures import parse_measure as parse_name
from fusion_bench.ranking import system_scores


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
        inputs.read_qrels(qrels),
        list(inputs.read_runs(runs).values()),
        rerankers=[] if rerankers is None else list(inputs.read_runs(rerankers).values()),
        queries=inputs.read_queries(queries),
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
    [name] = inputs.list_measures(measure)
    return parse_name(name, binary_relevance=binary_relevance)


def evaluate_systems(
    systems: System | Sequence[System],
    runs: AlignedRuns,
    measures: object,
    *,
    spaces: Mapping[str, ScoreSpace] | None = None,
    qrels: Qrels | None = None,
    threads: int | None = None,
) -> tuple[system_scores.Scores, ...]:
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
    named = {"spaces": spaces, "qrels": qrels}
    changed: dict[str, Any] = {name: each for name, each in named.items() if each is not None}
    runs = replace(runs, **changed) if changed else runs
    return system_scores.evaluate_systems(chosen, runs, parsed, threads=threads)


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
    plugins: Sequence[str | os.PathLike[str]] = (),
    allow_unmatched: bool = False,
    allow_suspect: bool = False,
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
        plugins: Python files to execute for this run, as ``--plugin`` does.
        allow_unmatched: Go on although document ids do not meet.
        allow_suspect: Go on although a check finds a list false.

    Raises:
        DataCheckError: Document ids do not meet, or a check finds a list false.
        FusionBenchError: Whatever is wrong with the experiment or its data.
    """
    from fusion_bench.checks.lint import check_rules, lint_datasets  # a comparison has no file

    collector = DetailsCollector(tuple(detail))
    with loaded_plugins([*map(Path, plugins)]):
        if not isinstance(experiment, Experiment):
            experiment, source = read_experiment(Path(experiment))
        origin = source or Source(Path("experiment"), experiment.model_dump(mode="json"))
        check_rules(experiment, origin)
        places = find_folders(folders or None, origin.path)
        report = experiments.run_experiment(
            experiment,
            origin,
            folders=places,
            split=split,
            query_type=query_type,
            where={k: (v,) if isinstance(v, str) else tuple(v) for k, v in (where or {}).items()},
            cache=cache,
            details=collector,
            allowed=allow_obstacles(unmatched=allow_unmatched, suspect=allow_suspect),
        )
        report = report.model_copy(update={"lint": lint_datasets(experiment, origin, places)})
    collector.forget_views()
    return report.with_lazy_details(collector.make_details)


def _are_measures(given: object) -> bool:
    """Whether texts that stand for systems name measures only."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        return False
    with suppress(FusionBenchError):
        return bool([*map(parse_name, inputs.list_measures(names))])
    return False


def compare(
    qrels: object,
    runs: object = None,
    systems: object = None,
    measures: object = DEFAULT_MEASURES,
    *,
    baseline: str | int | None = None,
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    roles: inputs.Roles | None = None,
    detail: Collection[str] = (),
    allow_unmatched: bool = False,
    allow_suspect: bool = False,
    **options: Any,  # noqa: ANN401 - the models check them
) -> Comparisons:
    """Compare systems with a baseline: means, paired differences, intervals, p-values.

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
        baseline: The system that the others are compared with, or its place from 0; the first by
            default.
        rerankers: Rerank lists by name, for systems with a ``blend``.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types, groups and splits: a path, or ``{id: …}``.
        roles: Role or roles of a run by its name, such as ``{"dense": "question"}``. A run named
            ``question``, ``query`` or ``original`` is ``question``, if nothing says which run is.
        detail: Systems whose top documents ``.details()`` lists too, beside the baseline and the
            best one.
        allow_unmatched: Go on although document ids do not meet.
        allow_suspect: Go on although a check finds a list false.
        options: Keys of an experiment (``alpha``, ``min_gain``, ``seed``, ``ties``, ``split``,
            ``query_type``), and of a dataset (``binary_relevance``, ``groups``, ``judgments``); how
            lists are read, by name (``order``, ``ids``, ``drop_own_id``, ``encoding``), and
            judgments (``grades``, ``on_duplicate``).

    Raises:
        DataCheckError: Document ids do not meet, or a check finds a list false.
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
    inputs.refuse_measure_words(options, "compare", "measures")
    data = {key: options.pop(key) for key in inputs.DATA_OPTIONS & set(options)}
    dataset = inputs.read_dataset(
        *(qrels, runs),
        rerankers=rerankers,
        score_spaces=score_spaces,
        queries=queries,
        settings=inputs.pop_settings(options),
        **data,
    ).with_roles(roles)
    asked = inputs.list_measures(DEFAULT_MEASURES if measures is None else measures)
    named = name_systems(systems, dataset.runs)
    try:
        experiment, source = make_experiment(
            "compare", named, dataset=dataset.name, baseline=baseline, measures=asked, **options
        )
    except ConfigError:
        if not _are_measures(systems):
            raise
        given = [systems] if isinstance(systems, str) else systems
        raise ConfigError(
            f"compare: systems: {given} are measures: write measures={given}"
        ) from None
    known_roles = {name: run.roles for name, run in dataset.runs.items()}
    with inputs.explain_roles():
        experiment.check_datasets(known_roles, tuple(dataset.rerankers), source)
    collector = DetailsCollector(tuple(detail))
    collector.check_names(experiment, "compare: detail")
    allowed = allow_obstacles(unmatched=allow_unmatched, suspect=allow_suspect)
    report = run_on_datasets(experiment, source, [dataset], details=collector, allowed=allowed)
    if any(s.class_key is not None or skips_lists_unasked(s) for s in experiment.systems.values()):
        from fusion_bench.checks.lint import describe_dataset, lint_experiment  # most need none

        findings = lint_experiment(experiment, source, [describe_dataset(dataset)])
        report = report.model_copy(update={"lint": findings})
    collector.forget_views()
    return Comparisons(report.with_lazy_details(collector.make_details))
