"""Explain one query of an experiment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fusion_bench.checks.judges import find_dataset_warnings
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.dataset_facts import describe_selection, select_trial
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import (
    Explanation,
    ScoreTrace,
    explain_ranking,
    unknown_query_message,
)
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.dataset_paths import find_dataset
from fusion_bench.io.excerpts import query_excerpt
from fusion_bench.ranking.fitting import needs_fitting
from fusion_bench.util.formatting import pluralize


def explain_query(
    experiment: Experiment,
    source: Source,
    query: str,
    *,
    system: str | None = None,
    dataset: str | None = None,
    folders: Collection[Path],
    trial: int = 1,
) -> Explanation:
    """Explain a query of any split under one system of an experiment.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        query: Id of the query.
        system: Name of the system; by default the gated one, or the experiment's baseline.
        dataset: As the experiment names it; by default its only one, or its first.
        folders: Where named datasets live.
        trial: Which file of each list that has several.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    name = dataset or experiment.dataset_names[0]
    if name not in experiment.dataset_names:
        raise UnknownNameError("dataset", name, experiment.dataset_names, where="--dataset")
    chosen = _select_system(experiment, system)
    file = find_dataset(name, folders, where=str(source.path), base=source.path.parent)
    spec, _ = read_spec(file)
    roles = {run: frozenset(facts.roles) for run, facts in spec.runs.items()}
    changed = {"systems": {chosen.name: chosen}, **ALL_JUDGED}
    alone = experiment.model_copy(update=changed)
    alone.check_datasets(roles, spec.rerank, source)
    every = load_dataset(
        file,
        runs=chosen.base_runs,
        rerankers=chosen.reranker_names,
        every_query=False if needs_fitting(chosen) else None,  # what is trained needs judgments
    )
    loaded = select_trial(every, trial)
    task = prepare_dataset(alone, source, loaded)
    if query not in task.runs.queries:
        raise ConfigError(
            f"{source.path}: dataset {loaded.name!r}: {unknown_query_message(query, task.runs)}: "
            "name another experiment with --experiment FILE"
        )
    explanation = explain_ranking(task.fit_system(chosen), task.runs, query, loaded.spaces)
    text = query_excerpt(loaded.queries.get(query))
    return replace(
        explanation,
        query_text=text,
        documents=loaded.documents,
        trial=describe_selection(every, trial),
        data_warnings=find_dataset_warnings(every, [chosen]),
    )


def _select_system(experiment: Experiment, name: str | None) -> System:
    if name is None:
        gated = experiment.gated_system if experiment.gate is not None else None
        return gated or experiment.systems[experiment.baseline]
    if name not in experiment.systems:
        raise UnknownNameError("system", name, experiment.systems, where="--system")
    return experiment.systems[name]


def select_traces(
    explanation: Explanation, document: str | None, *, against: str | None = None, top: int = 10
) -> list[ScoreTrace]:
    """The top of the list, or a document and the one to compare it with, in list order.

    Args:
        explanation: Of the query.
        document: Id of a document; None = the top of the list.
        against: Id of another document; None = the one ranked next above.
        top: Length of the top of the list.

    Raises:
        ConfigError: No source returned the document.
    """
    traces = explanation.traces
    if document is None:
        return [trace for trace in traces if trace.rank is not None][:top]
    selected = []
    for name in (document,) if against is None else (document, against):
        trace = explanation.find_trace(name)
        if trace is None:
            raise ConfigError(
                f"no source in use returned document {name!r} for query {explanation.query!r} "
                f"({pluralize(len(traces), 'candidate')})"
            )
        selected.append(trace)
    position = traces.index(selected[0])
    if against is None and position:
        selected.append(traces[position - 1])
    return sorted(selected, key=traces.index)


def trace_record(explanation: Explanation, trace: ScoreTrace) -> dict[str, Any]:
    """A document's score by term as plain data, in each stage too.

    Args:
        explanation: Of the query.
        trace: Of the document.
    """
    record = {
        **asdict(trace),
        "contributions": trace.contributions,
        "trial": explanation.trial,
        "data_warnings": [each.model_dump() for each in explanation.data_warnings],
        "switched_off": dict(explanation.switched_off),
        "policy": None if explanation.policy is None else asdict(explanation.policy),
    }
    stages = {}
    for stage in explanation.stages:
        inner = stage.find_trace(trace.document)
        stages[stage.system] = None if inner is None else trace_record(stage, inner)
    return {**record, "stages": stages} if stages else record
