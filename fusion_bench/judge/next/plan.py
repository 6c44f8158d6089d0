"""The documents that could still change a comparison, and whether any could change its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.completions.extremes import CompletionModel, Extremes
from fusion_bench.evaluation.completions.measure_models import (
    KNOWN_MEASURES,
    build_model,
    has_model,
)
from fusion_bench.evaluation.completions.top_documents import TopDocuments, collect_top
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.evaluation.ranking.list_positions import list_parts
from fusion_bench.evaluation.run_experiment import Progress, ignore_progress
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.judge.files.combined_grades import merge_qrels
from fusion_bench.judge.next.answers import answer_of
from fusion_bench.judge.pool.judged_systems import JudgedSystems
from fusion_bench.judge.pool.pool import Pair, PooledDocument
from fusion_bench.measures import Measure
from fusion_bench.measures.names import parse_measure
from fusion_bench.stats.answers import Answer

#: A smaller change of a difference is a rounding error.
NOISE: Final = 1e-12
STAGE: Final = "what could still change"


@dataclass(frozen=True)
class DecisiveDocument:
    """An unjudged document whose grade could change the difference of its query.

    Attributes:
        document: Its ranks are those in the lists of candidate and baseline.
        effect: How far its grade alone moves the difference of its query: the greatest over the
            grades as they are, with every other unjudged document not relevant, and over the two
            completions that make the difference least and greatest.
    """

    document: PooledDocument
    effect: float


@dataclass(frozen=True)
class JudgingPlan:
    """What could still change one comparison.

    Attributes:
        dataset: Name of the dataset.
        measure: The measure that decides.
        baseline: Name of a system.
        candidate: Name of the system that is compared with it.
        queries: How many are compared.
        difference: Mean difference, unjudged documents not relevant.
        low: The least mean difference that any completion gives.
        high: The greatest.
        is_exact: Completions reach both; else they are bounds.
        answer: What the comparison shows now.
        low_answer: What it shows where every query has its least difference.
        high_answer: Likewise, its greatest.
        documents: Those that could change a difference, what changes most first; empty where
            nothing could change the answer.
    """

    dataset: str
    measure: str
    baseline: str
    candidate: str
    queries: int
    difference: float
    low: float
    high: float
    is_exact: bool
    answer: Answer
    low_answer: Answer
    high_answer: Answer
    documents: tuple[DecisiveDocument, ...]

    @property
    def is_decided(self) -> bool:
        """Whether both extreme completions give the same answer."""
        return self.low_answer == self.high_answer


def plan_judging(
    judged: JudgedSystems,
    grades: Mapping[Pair, int],
    *,
    greatest: int,
    measure: str | None = None,
    baseline: str | None = None,
    candidate: str | None = None,
    progress: Progress = ignore_progress,
) -> JudgingPlan:
    """Find the documents that could still change a comparison.

    Args:
        judged: The systems.
        grades: Of a judge, beside the dataset's judgments.
        greatest: The greatest grade of the scale, which begins at 0.
        measure: The measure that decides; None = the experiment's first.
        baseline: Name of a system; None = the experiment's.
        candidate: The system to compare with it; None = the best of the others.
        progress: Called as the work goes on.

    Raises:
        ConfigError: There is no second system, or completions of the measure are not known.
        UnknownNameError: No such system or measure.
        FusionBenchError: The experiment or its data breaks a rule.
    """
    progress(STAGE, 0, 4)
    task = _prepare(judged, grades)
    chosen = task.measures[0]
    if measure is not None:
        relevance = judged.dataset.spec.binary_relevance
        chosen = parse_measure(measure, binary_relevance=relevance, where="--measure")
    if not has_model(chosen):
        raise ConfigError(
            f"what could still change {chosen.name} is not known: name one of "
            f"{', '.join(KNOWN_MEASURES)} with --measure"
        )
    values = _values(task, chosen)
    first, second = _choose_pair(values, baseline or judged.experiment.baseline, candidate)
    progress(STAGE, 1, 4)
    spaces = task.dataset.spaces
    sides = [
        list_parts(task.fit_system(judged.systems[n]), task.runs, spaces) for n in (second, first)
    ]
    top = collect_top(task.runs, *sides, cutoff=chosen.cutoff)
    model = build_model(chosen, top, range(greatest + 1))
    assert model is not None  # noqa: S101 - has_model said so
    ends = model.find_extremes()
    progress(STAGE, 2, 4)
    return _make_plan(task, chosen, values, (first, second), model, top, ends, progress)


def _prepare(judged: JudgedSystems, grades: Mapping[Pair, int]) -> EvaluationSet:
    """The evaluated queries with every grade that is known."""
    dataset = judged.dataset
    if grades:
        qrels = merge_qrels(dataset.qrels, grades).qrels
        dataset = replace(dataset, qrels=qrels, cache=None, keys=())
    return prepare_dataset(judged.experiment, judged.source, dataset)


def _values(task: EvaluationSet, measure: Measure) -> dict[str, FloatArray]:
    systems = [task.fit_system(system) for system in task.experiment.systems.values()]
    scores = evaluate_systems(
        systems, task.runs, [measure], spaces=task.dataset.spaces, qrels=task.dataset.qrels
    )
    return {each.system: each.values[0] for each in scores}


def _choose_pair(
    values: Mapping[str, FloatArray], baseline: str, candidate: str | None
) -> tuple[str, str]:
    """The baseline, and the candidate; by default the best of the other systems.

    Raises:
        UnknownNameError: No such system.
        ConfigError: There is no other system.
    """
    for option, name in {"--baseline": baseline, "--candidate": candidate}.items():
        if name is not None and name not in values:
            raise UnknownNameError("system", name, values, where=option)
    others = [name for name in values if name != baseline]
    if not others or candidate == baseline:
        raise ConfigError(
            f"{baseline!r} cannot be compared with itself: name a second system with --candidate"
        )
    best = max(others, key=lambda name: float(values[name].mean()))
    return baseline, candidate or best


def _make_plan(
    task: EvaluationSet,
    measure: Measure,
    values: Mapping[str, FloatArray],
    pair: tuple[str, str],
    model: CompletionModel,
    top: TopDocuments,
    ends: Extremes,
    progress: Progress,
) -> JudgingPlan:
    baseline, candidate = pair
    now = values[candidate] - values[baseline]
    answers = [
        answer_of(task, measure, values, pair, differences)
        for differences in (now, ends.low, ends.high)
    ]
    progress(STAGE, 3, 4)
    documents: Sequence[DecisiveDocument] = ()
    if answers[1] != answers[2]:
        documents = _rank_documents(top, model, ends)
    progress(STAGE, 4, 4)
    return JudgingPlan(
        dataset=task.dataset.name,
        measure=measure.name,
        baseline=baseline,
        candidate=candidate,
        queries=len(task.runs.queries),
        difference=float(now.mean()),
        low=float(ends.low.mean()),
        high=float(ends.high.mean()),
        is_exact=ends.is_exact,
        answer=answers[0],
        low_answer=answers[1],
        high_answer=answers[2],
        documents=tuple(documents),
    )


def _rank_documents(
    top: TopDocuments, model: CompletionModel, ends: Extremes
) -> list[DecisiveDocument]:
    """The documents with an effect, the greatest first; of equals the highest rank."""
    bases = (top.grade, ends.low_grades, ends.high_grades)
    effects = np.max([model.grade_effects(grades) for grades in bases], axis=0)
    rows = np.flatnonzero(effects > NOISE).tolist()
    runs = top.runs
    documents = [
        DecisiveDocument(
            PooledDocument(
                runs.queries[int(top.query[row])],
                runs.vocabulary[int(top.document[row])],
                (int(top.first[row]), int(top.second[row])),
            ),
            float(effects[row]),
        )
        for row in rows
    ]
    return sorted(
        documents,
        key=lambda each: (-round(each.effect, 12), each.document.best_rank, each.document.pair),
    )
