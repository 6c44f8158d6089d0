"""Is there a relevant document in the top k? CRAG's thresholds and ``min_score`` as classifiers.

A query's score is its best rerank score on the unit scale. At ``upper`` or above the verdict is
``correct``, below ``lower`` it is ``incorrect``, between them
``ambiguous``. Source: Yan, Gu, Zhu and Ling 2024, "Corrective Retrieval Augmented Generation"; the
0.7 and 0.3 come from CONV-03-05.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusion_bench.blend import on_unit_scale
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.query_rankings import rank_queries
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import CragSettings
from fusion_bench.report.tuning_records import thresholds as model
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.splits import QuerySplit
from fusion_bench.tune.validation.verdict import decide_verdict, paired_gain

#: Score spaces in which a score means the same for every query.
ABSOLUTE = ("unit", "logit", "log_prob")


class CragThresholds(NamedTuple):
    """Where the verdict changes; ``lower`` is at most ``upper``."""

    upper: float = 0.7
    lower: float = 0.3


def classify_scores(scores: FloatArray, thresholds: CragThresholds) -> dict[str, BoolArray]:
    """(Q,) by verdict: the queries that have it; one without any score (NaN) is ``incorrect``."""
    correct, incorrect = scores >= thresholds.upper, ~(scores >= thresholds.lower)
    return {"correct": correct, "ambiguous": ~(correct | incorrect), "incorrect": incorrect}


def threshold_utility(
    scores: FloatArray, relevant: BoolArray, thresholds: CragThresholds, credit: float
) -> FloatArray:
    """(Q,): 1 where the verdict is right, 0 where it is wrong, ``credit`` where it is ambiguous.

    Args:
        scores: Shape (Q,); NaN = no score.
        relevant: Shape (Q,): whether there is a relevant document.
        thresholds: The rule.
        credit: Utility of ``ambiguous``, above 0 and below 1.
    """
    verdicts = classify_scores(scores, thresholds)
    right = np.where(verdicts["correct"], relevant, ~relevant)
    return np.where(verdicts["ambiguous"], credit, right.astype(np.float64))


def assess_thresholds(
    scores: FloatArray, relevant: BoolArray, thresholds: CragThresholds, credit: float
) -> model.ThresholdRule:
    """Their mean utility, and by verdict the queries (with, without) a relevant document."""
    return model.ThresholdRule(
        upper=thresholds.upper,
        lower=thresholds.lower,
        utility=float(threshold_utility(scores, relevant, thresholds, credit).mean()),
        **{
            verdict: (int((mask & relevant).sum()), int((mask & ~relevant).sum()))
            for verdict, mask in classify_scores(scores, thresholds).items()
        },
    )


def fit_thresholds(
    scores: FloatArray, relevant: BoolArray, *, credit: float = 0.75
) -> CragThresholds:
    """The thresholds of greatest mean utility, exactly.

    With ``credit`` c the best rule says ``correct`` where the probability of a relevant document
    is at least c and ``incorrect`` where it is at most 1 − c. With c = 0.5 both thresholds are
    equal, which is the best ``min_score``.

    Source: Chow 1970, "On optimum recognition error and reject tradeoff".

    Args:
        scores: Shape (Q,); NaN = no score.
        relevant: Shape (Q,).
        credit: Utility of ``ambiguous``, from 0.5 to below 1.

    Returns:
        Thresholds half-way between neighboring scores; of equally good ones the narrowest
        ambiguous zone, then the lowest.
    """
    finite = np.isfinite(scores)
    order = np.argsort(scores[finite], kind="stable")
    ranked, truth = scores[finite][order], relevant[finite][order]
    # Numbers of scores below a threshold that can be told apart: none, …, all.
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(ranked) > 0) + 1, [len(ranked)]]).astype(int)
    # i scores called incorrect, those from j on called correct: below[i] + c·(j−i) + above[j].
    below = np.concatenate([[0], np.cumsum(~truth)])[cuts]
    above = np.concatenate([np.cumsum(truth[::-1])[::-1], [0]])[cuts]
    start = below - credit * cuts
    best = np.maximum.accumulate(start)
    # The last i of equal utility: the narrowest zone. Then the first j.
    lower = np.array(
        [np.flatnonzero(start[: j + 1] >= best[j] - 1e-9)[-1] for j in range(len(cuts))]
    )
    total = best + credit * cuts + above
    upper = int(np.flatnonzero(total >= total.max() - 1e-9)[0])
    return CragThresholds(
        _threshold_at(ranked, cuts[upper]), _threshold_at(ranked, cuts[lower[upper]])
    )


def _threshold_at(ranked: FloatArray, count: int) -> float:
    """A threshold with so many scores below it."""
    if len(ranked) == 0:
        return 0.0
    if count == 0:
        return min(0.0, float(ranked[0]))
    if count == len(ranked):
        return float(np.nextafter(ranked[-1], np.inf))
    return float((ranked[count - 1] + ranked[count]) / 2)


def calibration_bins(
    scores: FloatArray, relevant: BoolArray, *, bins: int = 10
) -> tuple[model.CalibrationBin, ...]:
    """Bins of equally many queries by score: a calibrated score equals the share of its bin."""
    finite = np.flatnonzero(np.isfinite(scores))
    order = finite[np.argsort(scores[finite], kind="stable")]
    parts = np.array_split(order, min(bins, max(len(order), 1)))
    return tuple(
        model.CalibrationBin(
            score=float(scores[part].mean()), share=float(relevant[part].mean()), queries=len(part)
        )
        for part in parts
        if len(part)
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
    tune = scores[split.tune], relevant[split.tune]
    held_out = scores[split.held_out], relevant[split.held_out]
    default = CragThresholds(crag.upper, crag.lower)
    tuned = fit_thresholds(*tune, credit=crag.credit)
    minimum = fit_thresholds(*tune, credit=0.5)
    new, old = (threshold_utility(*held_out, rule, crag.credit) for rule in (tuned, default))
    gain = paired_gain(new, old, objective.group_codes[split.held_out], seed=seed)
    return model.ThresholdReport(
        top=crag.top,
        credit=crag.credit,
        default=assess_thresholds(*held_out, default, crag.credit),
        tuned=assess_thresholds(*held_out, tuned, crag.credit),
        min_score=assess_thresholds(*held_out, minimum, 0.5),
        gain=gain,
        verdict=decide_verdict(gain.low, gain.high),
        calibration=calibration_bins(*held_out),
    )
