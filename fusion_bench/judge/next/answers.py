"""The answer of a comparison whose differences are others than the measured ones."""

from __future__ import annotations

from collections.abc import Mapping

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.measures import Measure
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.answers import Answer
from fusion_bench.stats.compare_family import ComparedValues, compare_family


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
    keys = tuple(task.runs.groups)
    table = ComparedValues(measure.name, given, baseline, keys, is_bounded(measure.name))
    settings = task.experiment
    (comparisons,) = compare_family(
        [table],
        correction=settings.correction,
        min_gain=settings.min_gain,
        seed=settings.seed,
        alpha=settings.alpha,
        resamples=settings.resamples,
    )
    answer = next(each.answer for each in comparisons if each.candidate == candidate)
    if answer is None:  # pragma: no cover - every comparison of a family has one
        raise ConfigError(f"{candidate} was not compared with {baseline}")
    return answer
