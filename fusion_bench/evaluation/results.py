"""What was measured, as the records of a report."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.assessment import Assessment, perfect_order_values
from fusion_bench.evaluation.prepared_dataset import ALL_QUERIES, EvaluationSet
from fusion_bench.evaluation.report_records.comparison_result import ComparisonResult
from fusion_bench.evaluation.report_records.system_result import (
    MeasureResult,
    SourceTieResult,
    SystemResult,
    TieResult,
)
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.evaluation.source_ties.find_source_ties import SourceTies
from fusion_bench.experiment.system import System
from fusion_bench.measures import TieSensitivity
from fusion_bench.stats.comparison import compare_with_baseline, decide_answer
from fusion_bench.stats.intervals import estimate_mean


def _measure_result(
    task: EvaluationSet,
    values: FloatArray,
    ties: TieResult | None = None,
    source_ties: SourceTieResult | None = None,
) -> MeasureResult:
    estimate = estimate_mean(values, task.groups, alpha=task.experiment.alpha)
    return MeasureResult(
        mean=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        values=tuple(values.tolist()),
        ties=ties,
        source_ties=source_ties,
    )


def _tie_fields(ties: TieSensitivity, m: int) -> dict[str, Any]:
    """The fields of a :class:`TieResult` for one measure."""
    extremes = {"minimum": ties.minimum, "maximum": ties.maximum, "expected": ties.expected}
    means = {name: float(values[m].mean()) for name, values in extremes.items()}
    return {"affected_queries": int(ties.affected[m]), **means}


def system_result(
    task: EvaluationSet,
    system: System,
    assessment: Assessment,
    source_ties: SourceTies | None = None,
) -> SystemResult:
    """The row of one system.

    Args:
        task: What was evaluated.
        system: The system.
        assessment: What was measured of it.
        source_ties: What ties inside its lists do to it; None = not computed.
    """
    results = {}
    for m, measure in enumerate(task.measures):
        final, inside = TieResult(**_tie_fields(assessment.ties, m)), None
        if source_ties is not None and measure.name not in source_ties.unknown:
            count = source_ties.settlements
            inside = SourceTieResult(**_tie_fields(source_ties.ties, m), settlements=count)
        results[measure.name] = _measure_result(task, assessment.values[m], final, inside)
    return SystemResult(
        name=system.name,
        kind="system",
        config=system.resolved_config,
        measures=results,
        judged_only=tuple(assessment.unjudged.judged_only[0].tolist()),
        unjudged_share=float(assessment.unjudged.share.mean()),
        returned_documents=assessment.candidates,
    )


def reference_rows(task: EvaluationSet) -> list[SystemResult]:
    """Floor and ceiling rows: best source of all, best source per query, perfect order.

    A single source is the best of all and of each query: then its row is left out where a system
    is this source alone, and that of each query always.
    """
    # By name: of equally good sources the order of the systems must not choose.
    alone = [System(name=name, runs=(name,)) for name in sorted(task.runs.sources)]
    scores = evaluate_systems(alone, task.runs, task.measures, qrels=task.dataset.qrels)
    tuning = task.runs if task.tuning is None else task.tuning
    tuned = evaluate_systems(alone, tuning, task.measures[:1], qrels=task.dataset.qrels)
    chosen = int(np.argmax([float(score.values[0].mean()) for score in tuned]))
    where = task.tuning_split or task.split or ALL_QUERIES
    pool = perfect_order_values(task.runs, task.measures, qrels=task.dataset.qrels)
    best = np.max([score.values for score in scores], axis=0)
    oracle = "the best of the sources for each query and measure; fusion may pass it"
    order = "all candidates of all sources in the order of their grades; nothing can pass it"
    rows: list[tuple[str, Literal["floor", "ceiling"], str, FloatArray]] = [
        (
            f"best source (chosen on {where})",
            "floor",
            alone[chosen].name,
            scores[chosen].values,
        ),
        ("best source per query (oracle)", "ceiling", oracle, best),
        ("perfect order", "ceiling", order, pool),
    ]
    if len(alone) == 1:
        systems = task.experiment.systems.values()
        has_source = any(s.resolved_config == alone[0].resolved_config for s in systems)
        rows = [rows[2]] if has_source else [rows[0], rows[2]]
    results = []
    for name, kind, note, values in rows:
        pairs = zip(task.measures, values, strict=True)
        measures = {measure.name: _measure_result(task, array) for measure, array in pairs}
        results.append(SystemResult(name=name, kind=kind, note=note, measures=measures))
    return results


def compare_assessments(
    task: EvaluationSet, assessments: dict[str, Assessment]
) -> list[ComparisonResult]:
    """Every system against the baseline, measure by measure.

    The primary measure has the difference over judged documents and the answer. Judged documents
    speak against an answer only where some are not relevant.
    """
    settings = task.experiment
    options = settings.model_dump(include={"seed", "alpha", "resamples"})
    results = []
    for m, measure in enumerate(task.measures):
        comparisons = compare_with_baseline(
            measure.name,
            {name: assessment.values[m] for name, assessment in assessments.items()},
            settings.baseline,
            groups=task.groups,
            primary=m == 0,
            **options,
        )
        for comparison in comparisons:
            result = ComparisonResult.model_validate(comparison, from_attributes=True)
            if m == 0:
                pair = (
                    assessments[name].unjudged.judged_only[0]
                    for name in (result.candidate, result.baseline)
                )
                judged = float(np.mean(np.subtract(*pair)))
                against = judged if task.has_irrelevant_judgments else None
                answer = decide_answer(comparison, against, alpha=settings.alpha)
                changed = {"judged_only_difference": judged, "answer": answer}
                result = result.model_copy(update=changed)
            results.append(result)
    return results
