"""Which systems fuse lists, and whether that pays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from fusion_bench.evaluation.assessment import Assessment
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.results.fusion import FusionResult
from fusion_bench.evaluation.scores import Scores
from fusion_bench.evaluation.trials.evaluate_trials import trials_of
from fusion_bench.evaluation.trials.mean_unjudged import mean_unjudged
from fusion_bench.evaluation.unjudged.unjudged_difference import (
    UnjudgedDifference,
    UnjudgedEvidence,
    compare_unjudged,
)
from fusion_bench.evaluation.unjudged.unjudged_values import measure_unjudged
from fusion_bench.experiment.system import System
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.fusion_answer import FusionAnswer, decide_fusion
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.trials.paired_trials import paired_sides
from fusion_bench.stats.trials.trial_variance import TrialTerm, make_trial_terms
from fusion_bench.stats.unjudged_rule import Direction

Config = Mapping[str, Any]


def compare_fusions(
    task: EvaluationSet,
    assessed: Mapping[str, Assessment],
    sources: Mapping[str, Scores],
) -> FusionResult | None:
    """Every fusion against every single source; None where there is no fusion.

    Like with like: a reranker's merit is not fusion's, so reranked fusions only count where there
    are no others.

    Args:
        task: The experiment on one dataset.
        assessed: What was measured, by name of the system.
        sources: By name the values of each source alone, the primary measure first.
    """
    systems = {name: task.experiment.systems[name].resolved_config for name in assessed}
    fusions = [name for name, config in systems.items() if is_fusion(config)]
    plain = [name for name in fusions if not is_reranked(systems[name])]
    assessments = {name: assessed[name] for name in plain or fusions}
    compared = {name: each.values[0] for name, each in assessments.items()}
    if not compared or not sources:
        return None
    options = task.experiment.model_dump(include={"correction", "seed", "alpha"})
    answer = decide_fusion(
        compared,
        {name: scores.values[0] for name, scores in sources.items()},
        task.runs.groups,
        trial_terms=_list_trial_terms(task, assessments, sources),
        **options,
    )
    low, high = answer.low, answer.high
    if is_bounded(task.measures[0].name):
        low, high = max(low, -1.0), min(high, 1.0)
    ends = [end if math.isfinite(end) else None for end in (low, high)]
    pair, unjudged = _find_contradiction(task, answer, assessments, list(sources)) or ((), None)
    return FusionResult(
        verdict="unjudged decide" if pair else answer.verdict,
        contradicted=pair,
        unjudged=unjudged and unjudged.record,
        fusion=answer.fusion,
        source=answer.source,
        fusion_mean=exact_mean(compared[answer.fusion]),
        source_mean=exact_mean(sources[answer.source].values[0]),
        difference=answer.difference,
        low=ends[0],
        high=ends[1],
        p_adjusted=answer.p,
        fusions=len(compared),
        sources=len(sources),
        is_reranked=not plain,
    )


def _list_trial_terms(
    task: EvaluationSet, fusions: Mapping[str, Assessment], sources: Mapping[str, Scores]
) -> dict[tuple[str, str], tuple[TrialTerm, ...]]:
    """What trials add to the variance of each fusion's difference from each source."""
    terms: dict[tuple[str, str], tuple[TrialTerm, ...]] = {}
    if not task.later_trials:
        return terms
    for (name, fusion), (source, scores) in product(fusions.items(), sources.items()):
        system = task.experiment.systems[name]
        sides = paired_sides(
            trials_of(fusion.trials, 0),
            trials_of(scores.trials, 0),
            is_shared=f"runs/{source}" in task.trial_lists(system),
        )
        terms[name, source] = make_trial_terms(sides, task.groups)
    return terms


def _find_contradiction(
    task: EvaluationSet,
    answer: FusionAnswer,
    fusions: Mapping[str, Assessment],
    sources: Sequence[str],
) -> tuple[tuple[str, str], UnjudgedDifference] | None:
    """The first fusion and source whose shown difference unjudged documents contradict."""
    kind = task.judgment_kind
    if answer.verdict == "not shown" or kind == "complete":
        return None
    direction: Direction = 1 if answer.verdict == "pays" else -1
    shown = {
        "pays": [(answer.fusion, source) for source in sources],
        "loses": [(fusion, answer.source) for fusion in fusions],
    }
    for fusion, source in shown[answer.verdict]:
        unjudged = compare_unjudged(
            UnjudgedEvidence.of_measure(fusions[fusion].unjudged),
            _measure_source(task, source),
            groups=task.groups,
            alpha=task.experiment.alpha,
            kind=kind,
            is_bounded=is_bounded(task.measures[0].name),
        )
        if unjudged.decides(direction, task.experiment.min_gain):
            return (fusion, source), unjudged
    return None


def _measure_source(task: EvaluationSet, name: str) -> UnjudgedEvidence:
    alone = System(name=name, runs=(name,))
    trials = task.trials[: task.count_trials(alone)]
    values = [
        measure_unjudged(alone, trial.runs, task.measures[:1], spaces={}, qrels=trial.dataset.qrels)
        for trial in trials
    ]
    return UnjudgedEvidence.of_measure(values[0] if len(values) == 1 else mean_unjudged(values))


def is_fusion(config: Config | None) -> bool:
    """Whether a resolved configuration fuses several lists, be it in a stage."""
    return any(len(part.get("runs", ())) > 1 for part in _list_parts(config))


def is_reranked(config: Config | None) -> bool:
    """Whether the scores of a reranker weigh more than 0."""
    return bool(_list_rerank_blends(config)) and not has_idle_reranker(config)


def has_idle_reranker(config: Config | None) -> bool:
    """Whether rerankers are named, but the scores of each weigh 0."""
    blends = _list_rerank_blends(config)
    return bool(blends) and all(blend.get("beta") == 0 for blend in blends)


def _list_rerank_blends(config: Config | None) -> list[Config]:
    """The blends that name a reranker, those of stages too."""
    blends = (part.get("blend") or {} for part in _list_parts(config))
    return [blend for blend in blends if blend.get("method", "none") != "none"]


def _list_parts(config: Config | None) -> Iterator[Config]:
    """A system's configuration and those of its stages, however deep."""
    if config is not None:
        yield config
        for stage in (config.get("stages") or {}).values():
            yield from _list_parts(stage)
