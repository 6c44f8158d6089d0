"""CRAG's thresholds and ``min_score`` as classifiers: fitted, and judged on other queries.

A query's score is the best rerank score in the top of its list on the unit scale; see
:mod:`fusion_bench.evaluation.crag` for the verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.evaluation.crag import (
    OUTSIDE,
    CragThresholds,
    ListEvidence,
    absolute_rerankers,
    classify_scores,
    list_evidence,
    system_evidence,
)
from fusion_bench.experiment.settings import CragFitSettings
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.report import tuning_records as model
from fusion_bench.tune.objective import TuningObjective


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
    counts = {
        str(verdict): (int((mask & relevant).sum()), int((mask & ~relevant).sum()))
        for verdict, mask in classify_scores(scores, thresholds).items()
    }
    utility = float(threshold_utility(scores, relevant, thresholds, credit).mean())
    return model.ThresholdRule(
        upper=thresholds.upper, lower=thresholds.lower, utility=utility, **counts
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
    high, low = cuts[upper], cuts[lower[upper]]
    at_upper = _threshold_at(ranked, high)
    return CragThresholds(at_upper, at_upper if low == high else _lower_threshold(ranked, low))


def _threshold_at(ranked: FloatArray, count: int) -> float:
    """A threshold with so many scores below it, the others at or above it."""
    if len(ranked) == 0:
        return 0.0
    if count == 0:
        return min(0.0, float(ranked[0]))
    if count == len(ranked):
        return float(np.nextafter(ranked[-1], np.inf))
    middle = float((ranked[count - 1] + ranked[count]) / 2)
    return middle if middle > ranked[count - 1] else float(ranked[count])


def _lower_threshold(ranked: FloatArray, count: int) -> float:
    """A threshold with so many scores at or below it, fewer than all."""
    if count == 0:
        return min(0.0, float(ranked[0]) - OUTSIDE)
    middle = float((ranked[count - 1] + ranked[count]) / 2)
    return middle if middle < ranked[count] else float(ranked[count - 1])


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


@dataclass(frozen=True, eq=False)
class FittedThresholds:
    """Thresholds fitted on the tuning queries of one list, and what they decide held out.

    Attributes:
        evidence: The list.
        split: Which queries they were fitted on, and which decide.
        crag: As the experiment says.
        tuned: The two thresholds.
        minimum: As one threshold, without credit for doubt.
    """

    evidence: ListEvidence
    split: QuerySplit
    crag: CragFitSettings
    tuned: CragThresholds
    minimum: CragThresholds

    @property
    def default(self) -> CragThresholds:
        """The thresholds as they were."""
        return CragThresholds(self.crag.upper, self.crag.lower)

    def utilities(self, thresholds: CragThresholds) -> FloatArray:
        """Shape (held-out queries,): :func:`threshold_utility`."""
        return threshold_utility(*self._held_out, thresholds, self.crag.credit)

    def to_report(self, gain: model.Gain, verdict: model.TuningVerdict) -> model.ThresholdReport:
        """The record of the list.

        Args:
            gain: Held out, of the utilities: tuned − default.
            verdict: What it allows to be said.
        """
        evidence, credit = self.evidence, self.crag.credit
        return model.ThresholdReport(
            name=evidence.name,
            kind=evidence.kind,
            reranker=evidence.reranker,
            top=self.crag.top,
            credit=credit,
            default=assess_thresholds(*self._held_out, self.default, credit),
            tuned=assess_thresholds(*self._held_out, self.tuned, credit),
            min_score=assess_thresholds(*self._held_out, self.minimum, 0.5),
            gain=gain,
            verdict=verdict,
            calibration=calibration_bins(*self._held_out),
        )

    @property
    def _held_out(self) -> tuple[FloatArray, BoolArray]:
        mask = self.split.held_out
        return self.evidence.scores[mask], self.evidence.relevant[mask]


def fit_lists(
    lists: Sequence[ListEvidence], split: QuerySplit, crag: CragFitSettings
) -> list[FittedThresholds]:
    """Fit thresholds on the tuning queries of each list.

    Args:
        lists: The evidence on each list.
        split: Which queries they are fitted on, and which decide.
        crag: As the experiment says.
    """
    fitted = []
    for evidence in lists:
        tune = evidence.scores[split.tune], evidence.relevant[split.tune]
        tuned = fit_thresholds(*tune, credit=crag.credit)
        minimum = fit_thresholds(*tune, credit=0.5)
        fitted.append(FittedThresholds(evidence, split, crag, tuned, minimum))
    return fitted


def collect_evidence(
    objective: TuningObjective, system: System, dataset: Dataset, crag: CragFitSettings
) -> list[ListEvidence]:
    """The lists of a system first, then every rerank list with absolute scores by itself.

    Args:
        objective: On all queries.
        system: The tuned one.
        dataset: Gives the rerank lists.
        crag: As the experiment says.
    """
    if system.blend.reranker_name is None:  # the search switched it off; the scores are there
        system = system.model_copy(update={"blend": objective.system.blend})
    final = system_evidence(system, objective.runs, crag)
    alone = [
        list_evidence(dataset, name, objective.runs.queries, crag)
        for name in absolute_rerankers(dataset.spaces)
        if name in dataset.rerankers
    ]
    return alone if final is None else [final, *alone]
