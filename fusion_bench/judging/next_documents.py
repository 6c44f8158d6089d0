"""Which documents, judged, could still change the comparison that decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from fusion_bench.checks.completed_measures import KNOWN_MEASURES, build_model, has_model
from fusion_bench.checks.completions import CompletionModel, Extremes, TopCandidates, collect_top
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import NOISE, FloatArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.prepared_dataset import (
    EvaluationSet,
    find_ignored_queries,
    prepare_dataset,
)
from fusion_bench.experiment.system import System
from fusion_bench.judging.judge_files import merge_qrels
from fusion_bench.judging.judge_values import with_grades
from fusion_bench.judging.pools import JudgedSystems, Pair, PooledDocument
from fusion_bench.measures import Measure
from fusion_bench.measures.names import parse_measure
from fusion_bench.ranking.final_lists import list_parts
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.comparison import SHOWN, Answer
from fusion_bench.stats.comparison_family import compare_with_baseline
from fusion_bench.util.formatting import Progress, format_number, ignore_progress, pluralize


def answer_of(
    task: EvaluationSet,
    measure: Measure,
    values: Mapping[str, FloatArray],
    pair: tuple[str, str],
    differences: FloatArray,
) -> Answer:
    """What a report would answer if a pair had these differences.

    The other systems of the experiment keep their values: they are in the family that p and
    intervals account for. Other datasets are not.

    Args:
        task: Gives the groups, and the settings of the test.
        measure: What is measured.
        values: By system, shape (Q,).
        pair: Baseline and candidate.
        differences: Shape (Q,): candidate − baseline.
    """
    baseline, candidate = pair
    given = {**values, candidate: values[baseline] + differences}
    settings = task.experiment
    comparisons = compare_with_baseline(
        *(measure.name, given, baseline),
        groups=task.runs.groups,
        is_bounded=measure.is_bounded,
        min_gain=settings.min_gain,
        seed=settings.seed,
        alpha=settings.alpha,
    )
    answer = next(each.answer for each in comparisons if each.candidate == candidate)
    if answer is None:  # pragma: no cover - every comparison of a family has one
        raise ConfigError(f"{candidate} was not compared with {baseline}")
    return answer


#: The documents of two systems' lists, what they could still do to a measure, and its ends.
_RepeatExtremes: TypeAlias = tuple[TopCandidates, CompletionModel, Extremes]


def _find_repeat_extremes(
    runs: AlignedRuns, pair: tuple[System, System], measure: Measure, scale: Sequence[int]
) -> _RepeatExtremes:
    """The completions of one repeat.

    Args:
        runs: The evaluated queries.
        pair: Baseline and candidate, fitted.
        measure: One of which completions are known.
        scale: The grades that a judge may give.
    """
    second, first = (list_parts(each, runs) for each in pair)
    top = collect_top(runs, first, second, cutoff=measure.cutoff)
    model = build_model(measure, top, scale)
    if model is None:
        raise AssertionError(f"{measure.name} has no model")
    return top, model, model.find_extremes()


def _rank_documents(repeats: Sequence[_RepeatExtremes]) -> list[tuple[PooledDocument, float]]:
    """The documents with an effect, the greatest first; of equals the highest rank.

    Over several repeats the effect is the mean, and a rank is the highest.
    """
    effects: dict[Pair, float] = {}
    ranks: dict[Pair, tuple[int, int]] = {}
    for top, model, ends in repeats:
        bases = (top.grade, ends.low_grades, ends.high_grades)
        moved = np.max([model.grade_effects(grades) for grades in bases], axis=0)
        for row in np.flatnonzero(moved > NOISE).tolist():
            pair = (
                top.runs.queries[int(top.query[row])],
                top.runs.vocabulary[int(top.document[row])],
            )
            effects[pair] = effects.get(pair, 0.0) + float(moved[row]) / len(repeats)
            first, second = ranks.get(pair, (0, 0))
            places = int(top.first[row]), int(top.second[row])
            ranks[pair] = _highest(first, places[0]), _highest(second, places[1])
    documents = [(PooledDocument(*pair, ranks[pair]), effect) for pair, effect in effects.items()]
    return sorted(
        documents, key=lambda each: (-round(each[1], 12), each[0].best_rank, each[0].pair)
    )


def _highest(first: int, second: int) -> int:
    return min(filter(None, (first, second)), default=0)


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
        documents: Those that could change a difference, with how far each could move that of its
            query, what changes most first; empty where nothing could change the answer.
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
    documents: tuple[tuple[PooledDocument, float], ...]
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
    dataset = judged.dataset
    if grades:
        dataset = with_grades(dataset, merge_qrels(dataset.qrels, grades))
    task = prepare_dataset(judged.experiment, judged.source, dataset)
    chosen = _choose_measure(task, measure, greatest)
    systems = list(task.experiment.systems.values())
    scores = evaluate_systems(systems, task.runs, [chosen], training=task.training)
    values = {each.system: each.values[0] for each in scores}
    first, second = _choose_pair(values, baseline or judged.experiment.baseline, candidate)
    progress(STAGE, 1, 4)
    pair = judged.systems[first], judged.systems[second]
    scale = range(greatest + 1)
    count = _count_paired_repeats(task, pair)
    repeats = [
        _find_repeat_extremes(
            runs, (task.fit_system(pair[0], t), task.fit_system(pair[1], t)), chosen, scale
        )
        for t, runs in enumerate(task.runs.repeats[:count])
    ]
    progress(STAGE, 2, 4)
    ends = [each for _, _, each in repeats]
    low = np.mean([each.low for each in ends], axis=0)
    high = np.mean([each.high for each in ends], axis=0)
    now = values[second] - values[first]
    answers = [answer_of(task, chosen, values, (first, second), d) for d in (now, low, high)]
    progress(STAGE, 3, 4)
    documents = [] if _show_same(*answers) else _rank_documents(repeats)
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
        is_exact=len(ends) == 1 and ends[0].is_exact,
        answer=answers[0],
        low_answer=answers[1],
        high_answer=answers[2],
        documents=tuple(documents),
        ignored_queries=len(find_ignored_queries(task)),
    )


def _count_paired_repeats(task: EvaluationSet, pair: tuple[System, System]) -> int:
    """How many repeats both systems have; a system of one has it in each of the other's.

    Raises:
        ConfigError: They have different numbers, and the ends are formed repeat by repeat.
    """
    counts = [task.runs.count_repeats(system.list_keys) for system in pair]
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


def describe_ends(plan: JudgingPlan) -> str:
    """The difference now, and what judging could make of it."""
    low, now, high = (format_number(v, signed=True) for v in (plan.low, plan.difference, plan.high))
    ends = "Judging could make it" if plan.is_exact else "Judging keeps it within"
    pair = f"{plan.candidate} - {plan.baseline}, {plan.measure}"
    return (
        f"{pair}: {now} over {pluralize(plan.queries, 'query')} ({plan.answer}). "
        f"{ends} {low} ({plan.low_answer}) to {high} ({plan.high_answer})."
    )


def describe_rest(plan: JudgingPlan, asked: int) -> str:
    """Whether anything is left that could change the answer.

    Args:
        plan: What could change it.
        asked: Documents that are asked for.
    """
    answers = {plan.low_answer, plan.answer, plan.high_answer}
    answer = plan.answer if len(answers) == 1 else "not shown"  # equal lists show nothing, too
    if plan.is_decided:
        return f"Nothing left could change the answer: {answer}."
    if plan.has_one_answer:
        compared = pluralize(plan.queries, "compared query")
        return f"On the {compared} alone, nothing could change it: {answer}."
    total = pluralize(len(plan.documents), "document")
    return f"{total} could still change it; the first {asked:,} change most."
