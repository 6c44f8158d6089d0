"""The outcome of a search on held-out queries, with what unjudged documents could change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fusion_bench.checks.completion_bounds import (
    QueryBounds,
)
from fusion_bench.checks.records import (
    CompletionBounds,
)
from fusion_bench.checks.unjudged import UnjudgedDifference
from fusion_bench.config.models import parse_model
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import sort_field_values
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.tuning_records import Gain, ParetoFront, ParetoPoint
from fusion_bench.tune.crag import FittedThresholds, collect_evidence, fit_lists
from fusion_bench.tune.cross_fitting import CrossFit, adopt_fit, params_by_query, widen_fit
from fusion_bench.tune.gains import list_trial_terms
from fusion_bench.tune.held_out import ClassTuning, HeldOutEvaluation, HeldOutUnjudged, JudgedBounds
from fusion_bench.tune.search import SearchResult
from fusion_bench.tune.trial_log import Trial
from fusion_bench.tune.trial_selection import CrossValidation


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """The search, the choice, and what was searched beside it.

    Attributes:
        result: The search on all tuning queries.
        chosen: Of its trials.
        cross: The nested cross-validation; None = not asked for.
        per_type: Parameters by query type or intent; None = not asked for.
        front: Quality against rerank effort; None = not asked for.
    """

    result: SearchResult
    chosen: Trial
    cross: CrossValidation | None = None
    per_type: ClassTuning | None = None
    front: ParetoFront | None = None

    @property
    def tests_a_change(self) -> bool:
        """Whether the held-out queries decide on more than the default."""
        return self.chosen is not self.result.default_trial or self.per_type is not None


class ClassGain(NamedTuple):
    """The held-out gain of one class of queries.

    Attributes:
        name: Its type or intent; None = queries without one.
        gain: Tuned − default.
        bounds: What unjudged documents could make of its means, by system.
    """

    name: str | None
    gain: Gain
    bounds: dict[str, CompletionBounds]


@dataclass(frozen=True, eq=False)
class HeldOutGains:
    """Evaluates what a search chose.

    Attributes:
        evaluation: The objective, its split, and the rules.
        outcome: What was searched.
        dataset: Where the queries come from.
        fit: What cross-fitting evaluates instead; None = the chosen trial itself is evaluated.
    """

    evaluation: HeldOutEvaluation
    outcome: SearchOutcome
    dataset: Dataset
    fit: CrossFit | None = None

    @cached_property
    def _values(self) -> FloatArray:
        """(2, Q): of the default and of the chosen trial."""
        objective = self.evaluation.objective
        return objective.evaluate_params([objective.default_params, self.outcome.chosen.params])

    @property
    def default(self) -> FloatArray:
        """(Q,): values of the default."""
        values: FloatArray = self._values[0]
        return values

    @property
    def chosen(self) -> FloatArray:
        """(Q,): values of the chosen trial."""
        values: FloatArray = self._values[1]
        return values

    @property
    def tuned(self) -> FloatArray:
        """(Q,): of what is evaluated: the chosen trial, or by fold what the others choose."""
        return self.chosen if self.fit is None else self.default + self.fit.values

    @cached_property
    def default_by_trial(self) -> FloatArray | None:
        """(T, Q): of the default on each trial of the lists; None = there is one."""
        objective = self.evaluation.objective
        return objective.evaluate_by_trial(objective.system)

    @cached_property
    def tuned_by_trial(self) -> FloatArray | None:
        """(T, Q): of what is evaluated."""
        objective = self.evaluation.objective
        if self.fit is None or self.default_by_trial is None:
            return objective.evaluate_by_trial(self.system)
        systems, codes = self._systems_by_query(self.fit)
        values = self.default_by_trial.copy()
        for number, system in enumerate(systems):
            by_trial = objective.evaluate_by_trial(system)
            if by_trial is not None:
                values[:, codes == number] = by_trial[:, codes == number]
        return values

    @property
    def gain_by_trial(self) -> FloatArray | None:
        """(T, Q): tuned − default."""
        return _subtract(self.tuned_by_trial, self.default_by_trial)

    @cached_property
    def chosen_gain_by_trial(self) -> FloatArray | None:
        """(T, Q): the chosen trial of the search − default."""
        if self.fit is None:
            return self.gain_by_trial
        chosen = self.evaluation.objective.evaluate_by_trial(self.system)
        return _subtract(chosen, self.default_by_trial)

    def _systems_by_query(self, fit: CrossFit) -> tuple[list[System], IntArray]:
        """The systems that cross-fitting evaluates, and (Q,) the number of each query's."""
        objective = self.evaluation.objective
        split, tuning = self.evaluation.split, self.evaluation.tuning
        params, codes = params_by_query(objective, split, tuning, self.outcome.result, fit)
        return [objective.build_system(each) for each in params], codes

    @cached_property
    def system(self) -> System:
        """The chosen one."""
        return self.evaluation.objective.build_system(self.outcome.chosen.params)

    @cached_property
    def thresholds(self) -> list[FittedThresholds]:
        """CRAG's thresholds of each list; empty = not asked for."""
        crag, objective = self.evaluation.tuning.crag, self.evaluation.objective
        if crag is None:
            return []
        lists = collect_evidence(objective, self.system, self.dataset, crag)
        return fit_lists(lists, self.evaluation.split, crag)

    @cached_property
    def family(self) -> tuple[Gain, Gain | None, list[Gain]]:
        """Tuned − default, by class − one set for all (None = not asked for), and thresholds.

        All verdicts of the run are one family.
        """
        mask, per_type = self.evaluation.split.held_out, self.outcome.per_type
        evaluation, objective = self.evaluation, self.evaluation.objective
        rows, trials = [(self.tuned[mask], self.default[mask])], [self.gain_by_trial]
        if per_type is not None:
            rows.append((per_type.values[mask], per_type.overall[mask]))
            sides = map(objective.evaluate_by_trial, (per_type.system, per_type.base))
            trials.append(_subtract(*sides))
        rows += [
            (each.utilities(each.tuned), each.utilities(each.default)) for each in self.thresholds
        ]
        gain, *others = evaluation.judge_family(rows, trials)
        if self.fit is not None:
            terms = list_trial_terms(self.gain_by_trial, objective.group_codes)
            fit = widen_fit(self.fit, terms, objective.group_codes)
            gain = adopt_fit(gain, fit, is_bounded=evaluation.is_bounded)
        return gain, (others.pop(0) if per_type is not None else None), others

    @cached_property
    def _checker(self) -> HeldOutUnjudged:
        evaluation = self.evaluation
        return HeldOutUnjudged(
            evaluation.objective, evaluation.split, self.dataset, evaluation.alpha
        )

    def compare_unjudged(self) -> UnjudgedDifference | None:
        """Of what is evaluated − the default; None with complete judgments."""
        objective = self.evaluation.objective
        if self.fit is None:
            return self._checker.compare(self.system, objective.system)
        systems, codes = self._systems_by_query(self.fit)
        return self._checker.compare_by_query(systems, codes, objective.system)

    def compare_classes_unjudged(self) -> UnjudgedDifference | None:
        """Of the parameters by class − those for all."""
        per_type = self.outcome.per_type
        if per_type is None:
            return None
        return self._checker.compare(per_type.system, per_type.base)

    @cached_property
    def judged(self) -> JudgedBounds:
        """How much is judged of systems on the held-out queries."""
        evaluation = self.evaluation
        return JudgedBounds(evaluation.objective, self.dataset.qrels, evaluation.split.held_out)

    @cached_property
    def bounds(self) -> dict[str, QueryBounds]:
        """Of the default, the tuned system, and the one with parameters by class."""
        per_type = self.outcome.per_type
        systems = {
            "the default": self.evaluation.objective.system,
            "the tuned system": self.system,
            **({} if per_type is None else {f"tuned by {per_type.key.field}": per_type.system}),
        }
        return self.judged.of_systems(systems)

    def check_front(self) -> ParetoFront | None:
        """The front, with what is judged, and what the rest could change in its best gain."""
        front, objective = self.outcome.front, self.evaluation.objective
        if front is None:
            return None
        front = front.model_copy(update={"points": tuple(map(self._with_bounds, front.points))})
        if "default" in front.best.roles:
            return front
        unjudged = self._checker.compare(_build_system(front.best), objective.system)
        if unjudged is None:
            return front
        is_contradicted = unjudged.decides(1, self.evaluation.tuning.min_gain)
        return front.model_copy(
            update={"unjudged": unjudged.record, "is_contradicted": is_contradicted}
        )

    def _with_bounds(self, point: ParetoPoint) -> ParetoPoint:
        """A point with what is judged of it, where it is shown."""
        if not point.is_shown:
            return point
        bounds = self.judged.of_system(_build_system(point))
        return point.model_copy(update={"bounds": bounds and bounds.record})

    def gains_by(self, field: str) -> Iterator[ClassGain]:
        """The held-out gain of each value of a field of the queries; nothing with fewer than two.

        The gains are not adjusted.
        """
        held_out, runs = self.evaluation.split.held_out, self.evaluation.objective.runs
        values = np.array(runs.types if field == "type" else runs.values_of(field), dtype=object)
        names = sort_field_values(values[held_out])
        for name in names if len(names) > 1 else ():
            mask = held_out & (values == name)
            gain = self.evaluation.measure_gain(self.tuned, self.default, mask, self.gain_by_trial)
            yield ClassGain(name, gain, self.judged.of_queries(self.bounds, mask))


def _build_system(point: ParetoPoint) -> System:
    return parse_model(System, {**point.config, "name": "point"})


def _subtract(first: FloatArray | None, second: FloatArray | None) -> FloatArray | None:
    """First − second, (T, Q); None = there is one trial."""
    return None if first is None or second is None else first - second
