"""What was measured, as the records of a report."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation import report_records as model
from fusion_bench.evaluation.assessment import Assessment, perfect_order_values
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.system import System
from fusion_bench.stats.comparison import Comparison, compare_with_baseline, decide_answer
from fusion_bench.stats.intervals import estimate_mean


def _measure_result(
    task: EvaluationSet, values: FloatArray, ties: model.TieResult | None = None
) -> model.MeasureResult:
    settings = task.experiment
    estimate = estimate_mean(
        values,
        task.groups,
        alpha=settings.alpha,
        interval=settings.interval,
        seed=settings.seed,
    )
    return model.MeasureResult(
        mean=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        values=tuple(values.tolist()),
        ties=ties,
    )


def system_result(
    task: EvaluationSet, system: System, assessment: Assessment
) -> model.SystemResult:
    """The row of one system."""
    results, ties = {}, assessment.ties
    for m, asked in enumerate(task.measures):
        tied = model.TieResult(
            affected_queries=int(ties.affected[m]),
            minimum=float(ties.minimum[m].mean()),
            maximum=float(ties.maximum[m].mean()),
            expected=float(ties.expected[m].mean()),
        )
        results[asked.name] = _measure_result(task, assessment.values[m], tied)
    return model.SystemResult(
        name=system.name,
        kind="system",
        config=system.resolved_config,
        measures=results,
        judged_only=tuple(assessment.judged_only.tolist()),
        unjudged_share=float(assessment.unjudged.mean()),
        returned_documents=assessment.candidates,
    )


def reference_rows(task: EvaluationSet) -> list[model.SystemResult]:
    """Floor and ceiling rows: best single source, best source per query, perfect order."""
    # By name: of equally good sources the order of the systems must not choose.
    alone = [System(name=name, runs=(name,)) for name in sorted(task.runs.sources)]
    scores = evaluate_systems(alone, task.runs, task.measures, qrels=task.dataset.qrels)
    tuning = task.runs if task.tuning is None else task.tuning
    tuned = evaluate_systems(alone, tuning, task.measures[:1], qrels=task.dataset.qrels)
    chosen = int(np.argmax([float(score.values[0].mean()) for score in tuned]))
    where = "this split" if task.tuning is None else f"split {task.tuning_split!r}"
    pool = perfect_order_values(task.runs, task.measures, qrels=task.dataset.qrels)
    oracle = "oracle: the best of the sources for each query and measure; fusion may pass it"
    best = np.max([score.values for score in scores], axis=0)
    note = "all candidates of all sources in the order of their grades"

    def row(
        name: str, kind: Literal["floor", "ceiling"], note: str, values: FloatArray
    ) -> model.SystemResult:
        pairs = zip(task.measures, values, strict=True)
        results = {asked.name: _measure_result(task, array) for asked, array in pairs}
        return model.SystemResult(name=name, kind=kind, note=note, measures=results)

    return [
        row(
            "best single source",
            "floor",
            f"source chosen on {where}: {alone[chosen].name}",
            scores[chosen].values,
        ),
        row("best source per query", "ceiling", oracle, best),
        row("perfect order", "ceiling", note, pool),
    ]


def compare_assessments(
    task: EvaluationSet, assessments: dict[str, Assessment]
) -> list[model.ComparisonResult]:
    """Every system against the baseline, measure by measure."""
    settings = task.experiment
    results = []
    for m, asked in enumerate(task.measures):
        comparisons = compare_with_baseline(
            asked.name,
            {name: assessment.values[m] for name, assessment in assessments.items()},
            settings.baseline,
            groups=task.groups,
            primary=m == 0,
            seed=settings.seed,
            alpha=settings.alpha,
            interval=settings.interval,
            resamples=settings.resamples,
        )
        results += [
            model.ComparisonResult.model_validate(comparison, from_attributes=True)
            if m
            else _primary_result(task, comparison, assessments)
            for comparison in comparisons
        ]
    return results


def _primary_result(
    task: EvaluationSet, comparison: Comparison, assessments: dict[str, Assessment]
) -> model.ComparisonResult:
    """With the difference over judged documents and the answer.

    Judged documents speak against an answer only where some are not relevant.
    """
    candidate, baseline = assessments[comparison.candidate], assessments[comparison.baseline]
    judged = float(np.mean(candidate.judged_only - baseline.judged_only))
    against = judged if task.has_irrelevant_judgments else None
    answer = decide_answer(comparison, against, alpha=task.experiment.alpha)
    result = model.ComparisonResult.model_validate(comparison, from_attributes=True)
    return result.model_copy(update={"judged_only_difference": judged, "answer": answer})
