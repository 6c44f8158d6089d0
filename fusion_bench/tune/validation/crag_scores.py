"""CRAG's thresholds fitted on a system's lists, and evaluated on the held-out queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.blend._score_spaces import on_unit_scale
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking import rank_queries
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import CragSettings
from fusion_bench.report import tuning_records as model
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.crag import (
    CragThresholds,
    calibration_bins,
    count_verdicts,
    fit_thresholds,
    threshold_utility,
)
from fusion_bench.tune.validation.splits import BoolArray, QuerySplit
from fusion_bench.tune.validation.verdict import decide_verdict, paired_gain

#: Score spaces in which a score means the same for every query.
ABSOLUTE = ("unit", "logit", "log_prob")


@dataclass(frozen=True, eq=False)
class _LabeledQueries:
    """Scores and truth of the queries where ``mask`` is true."""

    scores: FloatArray
    relevant: BoolArray

    def assess_thresholds(self, thresholds: CragThresholds, credit: float) -> model.ThresholdRule:
        """The thresholds, their mean utility and their verdicts."""
        utility = threshold_utility(self.scores, self.relevant, thresholds, credit)
        counts = count_verdicts(self.scores, self.relevant, thresholds)
        return model.ThresholdRule(
            upper=thresholds.upper, lower=thresholds.lower, utility=float(utility.mean()), **counts
        )


def best_scores(
    system: System, objective: TuningObjective, top: int, grade: int = 1
) -> tuple[FloatArray, BoolArray]:
    """Best rerank score and whether anything is relevant, in the top of each query's list.

    Args:
        system: With a blend that reads a rerank list.
        objective: What was tuned, on Q queries.
        top: How many documents count.
        grade: From which one is relevant.

    Returns:
        (Q,) scores on the unit scale, NaN = nothing scored; (Q,) truth.

    Raises:
        ConfigError: No rerank list, or one whose scores mean something within a query only.
    """
    name = system.blend.reranker_name
    space = objective.spaces.get(name or "")
    if name is None or space not in ABSOLUTE:
        raise ConfigError(
            f"crag: needs a system with a rerank list of score space {', '.join(ABSOLUTE)}, in "
            f"which a score means the same for every query; {system.name!r} has "
            f"{'no rerank list' if name is None else f'{name!r} of space {space!r}'}"
        )
    queries = len(objective.runs.queries)
    scores, relevant = np.full(queries, np.nan), np.zeros(queries, dtype=bool)
    for index, ranking in rank_queries(system, objective.runs, objective.spaces):
        view = ranking.runs
        inside = (ranking.positions >= 1) & (ranking.positions <= top)
        unit = on_unit_scale(view, view.rerankers.index(name), inside, space)
        best = np.full(len(view.queries), -np.inf)
        np.fmax.at(best, view.query_index[inside], unit[inside])
        scores[index] = np.where(np.isinf(best), np.nan, best)
        good = view.query_index[inside & (view.grades >= grade)]
        relevant[index] = np.bincount(good, minlength=len(view.queries)) > 0
    return scores, relevant


def evaluate_thresholds(
    system: System,
    objective: TuningObjective,
    split: QuerySplit,
    crag: CragSettings,
    *,
    seed: int = 0,
) -> model.ThresholdReport:
    """Fit thresholds on the tuning queries, and evaluate them and the default held out.

    Args:
        system: Whose lists.
        objective: What was tuned.
        split: Which queries they are fitted on, and which decide.
        crag: As the experiment says.
        seed: Of the randomization test.

    Raises:
        ConfigError: The system's rerank scores cannot be compared across queries.
    """
    scores, relevant = best_scores(system, objective, crag.top, crag.grade)
    tune, held_out = (
        _LabeledQueries(scores[mask], relevant[mask]) for mask in (split.tune, split.held_out)
    )
    default = CragThresholds(crag.upper, crag.lower)
    tuned = fit_thresholds(tune.scores, tune.relevant, credit=crag.credit)
    minimum = fit_thresholds(tune.scores, tune.relevant, credit=0.5)
    new, old = (
        threshold_utility(held_out.scores, held_out.relevant, thresholds, crag.credit)
        for thresholds in (tuned, default)
    )
    groups = number_by_appearance(objective.runs.groups)[0][split.held_out]
    gain = paired_gain(new, old, groups, seed=seed)
    return model.ThresholdReport(
        top=crag.top,
        credit=crag.credit,
        default=held_out.assess_thresholds(default, crag.credit),
        tuned=held_out.assess_thresholds(tuned, crag.credit),
        min_score=held_out.assess_thresholds(minimum, 0.5),
        gain=gain,
        verdict=decide_verdict(gain.low, gain.high),
        calibration=calibration_bins(held_out.scores, held_out.relevant),
    )
