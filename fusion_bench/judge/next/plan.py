"""The documents that could still change a comparison, and whether any could change its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.completions.measure_models import KNOWN_MEASURES, has_model
from fusion_bench.evaluation.dataset_checks.ignored_queries import find_ignored_queries
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.evaluation.run_experiment import Progress, ignore_progress
from fusion_bench.evaluation.trials.evaluate_trials import evaluate_trials
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.judge.files.combined_grades import merge_qrels
from fusion_bench.judge.next.answers import answer_of
from fusion_bench.judge.next.decisive_documents import (
    DecisiveDocument,
    find_trial_extremes,
    mean_ends,
    rank_documents,
)
from fusion_bench.judge.pool.judged_systems import JudgedSystems
from fusion_bench.judge.pool.pool import Pair
from fusion_bench.measures import Measure
from fusion_bench.measures.names import parse_measure
from fusion_bench.stats.answers import SHOWN, Answer

STAGE: Final = "what could still change"


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
        ignored_queries: Queries that lists answer and nobody judged: not compared, though their
            documents could change the answer.
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
    ignored_queries: int = 0

    @property
    def has_one_answer(self) -> bool:
        """Whether the compared queries show the same now and in both extreme completions."""
        return _show_same(self.low_answer, self.answer, self.high_answer)

    @property
    def is_decided(self) -> bool:
        """Whether they do, and no query is left out for want of judgments.

        A completion between the extremes may spread the differences more than either of them, so
        that its test could answer otherwise.
        """
        return self.has_one_answer and not self.ignored_queries


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
        ConfigError: There is no second system, completions of the measure are not known, or no
            grade of the scale is relevant to it.
        UnknownNameError: No such system or measure.
        FusionBenchError: The experiment or its data breaks a rule.
    """
    progress(STAGE, 0, 4)
    task = _prepare(judged, grades)
    chosen = _choose_measure(task, measure, greatest)
    values = _values(task, chosen)
    first, second = _choose_pair(values, baseline or judged.experiment.baseline, candidate)
    progress(STAGE, 1, 4)
    pair = judged.systems[first], judged.systems[second]
    scale = range(greatest + 1)
    count = _count_paired_trials(task, pair)
    trials = [find_trial_extremes(each, pair, chosen, scale) for each in task.trials[:count]]
    progress(STAGE, 2, 4)
    low, high = mean_ends(trials)
    now = values[second] - values[first]
    answers = [answer_of(task, chosen, values, (first, second), d) for d in (now, low, high)]
    progress(STAGE, 3, 4)
    documents = [] if _show_same(*answers) else rank_documents(trials)
    progress(STAGE, 4, 4)
    return JudgingPlan(
        dataset=task.dataset.name,
        measure=chosen.name,
        baseline=first,
        candidate=second,
        queries=len(task.runs.queries),
        difference=float(now.mean()),
        low=float(low.mean()),
        high=float(high.mean()),
        is_exact=len(trials) == 1 and trials[0].ends.is_exact,
        answer=answers[0],
        low_answer=answers[1],
        high_answer=answers[2],
        documents=tuple(documents),
        ignored_queries=len(find_ignored_queries(task)),
    )


def _count_paired_trials(task: EvaluationSet, pair: tuple[System, System]) -> int:
    """How many trials both systems have; a system of one has it in each of the other's.

    Raises:
        ConfigError: They have different numbers, and the ends are formed trial by trial.
    """
    counts = [task.count_trials(system) for system in pair]
    if 1 < min(counts) < max(counts):
        names = " and ".join(f"{s.name} {n}" for s, n in zip(pair, counts, strict=True))
        raise ConfigError(
            f"{task.dataset.name}: numbers of trials: {names}: a plan pairs them, so both need the "
            "same number, or one of them one: name other systems with --baseline and --candidate"
        )
    return max(counts)


def _show_same(*answers: Answer) -> bool:
    """Whether all answers show the same; equal lists show no difference either."""
    return len({answer if answer in SHOWN else "not shown" for answer in answers}) == 1


def _choose_measure(task: EvaluationSet, name: str | None, greatest: int) -> Measure:
    """The named measure, or the experiment's first.

    Raises:
        ConfigError: Its completions are not known, or no grade of the scale is relevant to it.
    """
    measure = task.measures[0]
    if name is not None:
        relevance = task.dataset.spec.binary_relevance
        measure = parse_measure(name, binary_relevance=relevance, where="--measure")
    if not has_model(measure):
        raise ConfigError(
            f"what could still change {measure.name} is not known: name one of "
            f"{', '.join(KNOWN_MEASURES)} with --measure"
        )
    rel = getattr(measure, "rel", 0)
    if rel > greatest:
        raise ConfigError(
            f"{measure.name} counts documents from grade {rel}, and the scale ends at {greatest}: "
            f"--max-grade {rel}"
        )
    return measure


def _prepare(judged: JudgedSystems, grades: Mapping[Pair, int]) -> EvaluationSet:
    """The evaluated queries with every grade that is known."""
    dataset = judged.dataset
    if grades:
        later = tuple(_add_grades(trial, grades) for trial in dataset.later_trials)
        dataset = replace(_add_grades(dataset, grades), later_trials=later)
    return prepare_dataset(judged.experiment, judged.source, dataset)


def _add_grades(dataset: Dataset, grades: Mapping[Pair, int]) -> Dataset:
    qrels = merge_qrels(dataset.qrels, grades).qrels
    return replace(dataset, qrels=qrels, cache=None, keys=())


def _values(task: EvaluationSet, measure: Measure) -> dict[str, FloatArray]:
    """By system, shape (Q,); of several trials the means."""
    systems = list(task.experiment.systems.values())
    if not task.later_trials:
        systems = [task.fit_system(system) for system in systems]
    scores = evaluate_trials(task, systems, [measure])
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
