"""What was measured, as the records of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import Run, ScoreSpace
from fusion_bench.evaluation import report_records as model
from fusion_bench.evaluation.assessment import Assessment, best_source_values, perfect_order_values
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.rerank_list_checks import check_rerank_list, describe_problems
from fusion_bench.evaluation.scores import evaluate_systems, resolved_config
from fusion_bench.experiment.system import System
from fusion_bench.io import Dataset
from fusion_bench.stats.comparison import Comparison, compare_with_baseline, decide_answer
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.util.unmatched_query_ids import find_unmatched_ids


def list_infos(dataset: Dataset, aligned: AlignedRuns) -> list[model.ListInfo]:
    """What was noticed about each input list, sources first.

    Args:
        dataset: With the lists that are used.
        aligned: The same lists, over the queries that are looked at.
    """
    judged = set(dataset.qrels.queries)
    documents = set(dataset.qrels.vocabulary)
    returned_by_any = {document for run in dataset.runs.values() for document in run.vocabulary}

    def info(name: str, run: Run, space: ScoreSpace | None) -> model.ListInfo:
        expected = documents if space is None else returned_by_any
        returned = {q for q, size in zip(run.queries, np.diff(run.offsets), strict=True) if size}
        return model.ListInfo(
            name=name,
            kind="run" if space is None else "rerank",
            roles=tuple(sorted(run.roles)),
            read_options=asdict(run.read_options),
            score_space=space,
            unanswered_queries=len(judged - returned),
            unjudged_queries=len(returned - judged),
            unmatched_queries=find_unmatched_ids(returned, judged),
            duplicate_rows=run.duplicates,
            zero_scores=run.zero_scores,
            has_known_documents=not expected.isdisjoint(run.vocabulary),
            **({} if space is None else _rerank_facts(dataset, aligned, run, space)),
        )

    return [
        *(info(name, run, None) for name, run in dataset.runs.items()),
        *(info(name, run, dataset.spaces[name]) for name, run in dataset.rerankers.items()),
    ]


def _rerank_facts(
    dataset: Dataset, aligned: AlignedRuns, run: Run, space: ScoreSpace
) -> dict[str, Any]:
    """What is known of a rerank list beyond what is known of any run."""
    check = check_rerank_list(run, space, aligned, dict(dataset.runs))
    meta = dataset.provenance.get(run.name)
    return {
        "problems": tuple(describe_problems(check)),
        "degraded_queries": len(dataset.degraded(run.name)),
        "provider": None if meta is None else meta.asked,
        "ledger": None if meta is None else meta.ledger,
    }


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
        low=_maybe(estimate.low),
        high=_maybe(estimate.high),
        values=tuple(values.tolist()),
        ties=ties,
    )


def _maybe(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def system_result(
    task: EvaluationSet, system: System, assessment: Assessment
) -> model.SystemResult:
    """The row of one system."""
    results = {}
    for m, asked in enumerate(task.measures):
        ties = model.TieResult(
            affected_queries=int(assessment.tie_affected[m]),
            minimum=float(assessment.tie_minimum[m].mean()),
            maximum=float(assessment.tie_maximum[m].mean()),
            expected=_maybe(float(assessment.tie_expected[m].mean())),
        )
        results[asked.name] = _measure_result(task, assessment.values[m], ties)
    return model.SystemResult(
        name=system.name,
        kind="system",
        config=resolved_config(system),
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
    chosen = int(np.argmax(_source_means(task, alone)))
    where = "this split" if task.tuning is None else f"split {task.tuning_split!r}"
    pool = perfect_order_values(task.runs, task.measures, qrels=task.dataset.qrels)
    rows: Sequence[tuple[str, str, FloatArray]] = (
        (
            "best single source",
            f"source chosen on {where}: {alone[chosen].name}",
            scores[chosen].values,
        ),
        (
            "best source per query",
            "oracle: the best of the sources for each query and measure; fusion may pass it",
            best_source_values([s.values for s in scores]),
        ),
        ("perfect order", "all candidates of all sources in the order of their grades", pool),
    )
    return [
        model.SystemResult(
            name=name,
            kind="floor" if i == 0 else "ceiling",
            note=note,
            measures={
                asked.name: _measure_result(task, values[m])
                for m, asked in enumerate(task.measures)
            },
        )
        for i, (name, note, values) in enumerate(rows)
    ]


def _source_means(task: EvaluationSet, alone: Sequence[System]) -> list[float]:
    """Mean of the primary measure of each source, on the queries that choices are made on."""
    runs = task.runs if task.tuning is None else task.tuning
    scores = evaluate_systems(alone, runs, task.measures[:1], qrels=task.dataset.qrels)
    return [float(score.values[0].mean()) for score in scores]


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
            _comparison_result(task, comparison, assessments, m) for comparison in comparisons
        ]
    return results


def _comparison_result(
    task: EvaluationSet, comparison: Comparison, assessments: dict[str, Assessment], m: int
) -> model.ComparisonResult:
    judged = None
    if m == 0:
        sides = [
            assessments[name].judged_only for name in (comparison.candidate, comparison.baseline)
        ]
        judged = float(np.mean(sides[0] - sides[1]))
    return model.ComparisonResult(
        measure=comparison.measure,
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        difference=comparison.difference,
        low=_maybe(comparison.low),
        high=_maybe(comparison.high),
        p=comparison.p,
        p_holm=comparison.p_holm,
        wins=comparison.wins,
        ties=comparison.ties,
        losses=comparison.losses,
        min_detectable_difference=comparison.min_detectable_difference,
        judged_only_difference=judged,
        answer=None if m else _verdict(task, comparison, judged),
    )


def _verdict(
    task: EvaluationSet, comparison: Comparison, judged_only_difference: float | None
) -> str:
    """The verdict; judged documents speak against it only where some are not relevant."""
    against = judged_only_difference if task.has_irrelevant_judgments else None
    return decide_answer(comparison, against, alpha=task.experiment.alpha)
