"""The checks of single queries: guards and golden queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.gate_settings import GatePolicy, Guard
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import explain_ranking
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.records.check_result import GoldenResult, GuardResult
from fusion_bench.gate.trials.trial_values import fit_trials
from fusion_bench.stats.comparison import NOISE


def check_guard(
    guard: Guard,
    policy: GatePolicy,
    task: EvaluationSet,
    before: Mapping[str, FloatArray],
    after: Mapping[str, FloatArray],
) -> GuardResult:
    """Count the queries that lose more than the guard allows.

    Args:
        guard: The guard.
        policy: Its policy.
        task: The dataset.
        before: Shape (Q,) by measure name: values of the baseline.
        after: The candidate's.
    """
    measure = task.measures[policy.measures.index(guard.measure)]
    difference = after[measure.name] - before[measure.name]
    broken = int((~np.isfinite(difference)).sum())
    violations = int((difference < -guard.max_loss - NOISE).sum())
    share = violations / len(difference)
    return GuardResult(
        collection=task.dataset.name,
        **guard.model_dump(),
        violations=violations,
        share=share,
        error=f"{broken} values are not finite" if broken else None,
        holds=not broken and share <= guard.max_share,
    )


def check_golden_queries(
    inputs: GateInputs, collections: Sequence[EvaluationSet]
) -> Iterator[GoldenResult]:
    """Check which golden queries keep their document in the top ranks.

    Raises:
        UnknownNameError: One names a dataset that the experiment does not have.
    """
    names = [task.dataset.name for task in collections]
    for i, golden in enumerate(inputs.policy.golden):
        fitting = [task for task in collections if golden.dataset in {None, task.dataset.name}]
        if not fitting:
            where = inputs.source.where(("gate", "golden", i, "dataset"))
            raise UnknownNameError("dataset", str(golden.dataset), names, where=where)
        rank, error, task = None, None, fitting[0]
        if len(fitting) > 1:
            error = f"several datasets ({', '.join(names)}): name the golden query's 'dataset'"
        elif golden.query not in task.runs.queries:
            error = "no such query among the evaluated ones"
        else:
            rank = _find_worst_rank(inputs.candidate, task, golden.query, golden.document)
        yield GoldenResult(
            collection="" if len(fitting) > 1 else task.dataset.name,
            **golden.model_dump(exclude={"dataset"}),
            rank=rank,
            error=error,
            holds=rank is not None and rank <= golden.top,
        )


def _find_worst_rank(system: System, task: EvaluationSet, query: str, document: str) -> int | None:
    """The lowest place of a document over the trials; None = some trial does not return it."""
    worst = 0
    for trial, fitted in fit_trials(task, system):
        ranking = explain_ranking(fitted, trial.runs, query, trial.dataset.spaces)
        trace = ranking.find_trace(document)
        if trace is None or trace.rank is None:
            return None
        worst = max(worst, trace.rank)
    return worst
