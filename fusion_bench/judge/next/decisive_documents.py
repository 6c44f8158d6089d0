"""The documents whose grades could change a difference, over the trials of two systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.completions.extremes import CompletionModel, Extremes
from fusion_bench.evaluation.completions.measure_models import build_model
from fusion_bench.evaluation.completions.top_documents import TopDocuments, collect_top
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.ranking.list_positions import list_parts
from fusion_bench.experiment.system import System
from fusion_bench.judge.pool.pool import Pair, PooledDocument
from fusion_bench.measures import Measure

#: A smaller change of a difference is a rounding error.
NOISE: Final = 1e-12


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


class TrialExtremes(NamedTuple):
    """The completions of one trial.

    Attributes:
        top: The first documents of both systems.
        model: Their difference as a function of the grades.
        ends: Its extremes.
    """

    top: TopDocuments
    model: CompletionModel
    ends: Extremes


def find_trial_extremes(
    trial: EvaluationSet, pair: tuple[System, System], measure: Measure, scale: Sequence[int]
) -> TrialExtremes:
    """The completions of one trial.

    Args:
        trial: The evaluated queries.
        pair: Baseline and candidate.
        measure: One of which completions are known.
        scale: The grades that a judge may give.
    """
    spaces = trial.dataset.spaces
    second, first = (list_parts(trial.fit_system(each), trial.runs, spaces) for each in pair)
    top = collect_top(trial.runs, first, second, cutoff=measure.cutoff)
    model = build_model(measure, top, scale)
    if model is None:
        raise AssertionError(f"{measure.name} has no model")
    return TrialExtremes(top, model, model.find_extremes())


def mean_ends(trials: Sequence[TrialExtremes]) -> tuple[FloatArray, FloatArray]:
    """(Q,) each: the least and greatest mean over trials; of several trials they are bounds."""
    low = np.mean([each.ends.low for each in trials], axis=0)
    high = np.mean([each.ends.high for each in trials], axis=0)
    return low, high


def rank_documents(trials: Sequence[TrialExtremes]) -> list[DecisiveDocument]:
    """The documents with an effect, the greatest first; of equals the highest rank.

    Over several trials the effect is the mean, and a rank is the highest.
    """
    effects: dict[Pair, float] = {}
    ranks: dict[Pair, tuple[int, int]] = {}
    for top, model, ends in trials:
        bases = (top.grade, ends.low_grades, ends.high_grades)
        moved = np.max([model.grade_effects(grades) for grades in bases], axis=0)
        for row in np.flatnonzero(moved > NOISE).tolist():
            pair = (
                top.runs.queries[int(top.query[row])],
                top.runs.vocabulary[int(top.document[row])],
            )
            effects[pair] = effects.get(pair, 0.0) + float(moved[row]) / len(trials)
            first, second = ranks.get(pair, (0, 0))
            places = int(top.first[row]), int(top.second[row])
            ranks[pair] = _highest(first, places[0]), _highest(second, places[1])
    documents = [
        DecisiveDocument(PooledDocument(*pair, ranks[pair]), effect)
        for pair, effect in effects.items()
    ]
    return sorted(
        documents,
        key=lambda each: (-round(each.effect, 12), each.document.best_rank, each.document.pair),
    )


def _highest(first: int, second: int) -> int:
    return min(filter(None, (first, second)), default=0)
