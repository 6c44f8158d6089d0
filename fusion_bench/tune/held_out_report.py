"""The report of a search: what the held-out queries decide, what speaks for it or against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fusion_bench.checks.completion_bounds import QueryBounds
from fusion_bench.checks.dataset_facts import (
    count_known_unjudged,
    describe_first_trial,
    list_infos,
    warn_first_trial,
    warn_ignored,
)
from fusion_bench.checks.judges import describe_judge, find_judge_warnings
from fusion_bench.checks.lists import find_data_warnings
from fusion_bench.checks.query_warnings import count_synthetic, find_grade_warnings, list_grades
from fusion_bench.checks.records import CompletionBounds, DataWarning, ListInfo
from fusion_bench.checks.source_ties import find_source_ties
from fusion_bench.checks.unjudged import UnjudgedDifference
from fusion_bench.config.models import parse_model
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import sort_field_values
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.fitting import fit_system
from fusion_bench.report import tuning_records as model
from fusion_bench.report.tuning_records import (
    DataFacts,
    FloorRow,
    Gain,
    IntentGain,
    ParetoFront,
    ParetoPoint,
    SplitChoice,
    TypeGain,
)
from fusion_bench.tune.crag import FittedThresholds, collect_evidence, fit_lists
from fusion_bench.tune.cross_fitting import CrossFit, adopt_fit, params_by_query, widen_fit
from fusion_bench.tune.gains import (
    UntunedValues,
    estimate_needed,
    judge_floor,
    list_trial_terms,
    select_trials,
)
from fusion_bench.tune.held_out import ClassTuning, HeldOutEvaluation, HeldOutUnjudged, JudgedBounds
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial
from fusion_bench.tune.sensitivity import (
    fold_records,
    parameter_importances,
    parameter_records,
    plateau_record,
)
from fusion_bench.tune.trial_selection import CrossValidation, describe_choice, shrink_gain


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


def measure_facts(
    objective: TuningObjective,
    tuned: System,
    dataset: Dataset,
    held_out: BoolArray,
    seed: int,
    of_first_trial: Sequence[str],
    bounds: Mapping[str, CompletionBounds],
) -> DataFacts:
    """Measure the default and the tuned system on the held-out queries, on the first trial.

    Args:
        objective: On all queries.
        tuned: The tuned system.
        dataset: With the lists that both use.
        held_out: Shape (Q,).
        seed: Of the random settlements of ties.
        of_first_trial: Names of what the run measures on the first trial.
        bounds: What unjudged documents could make of held-out means, by system.
    """
    runs, measures = objective.runs, [objective.measure]
    systems = {"the default": objective.system, "the tuned system": tuned}
    fitted = {name: fit_system(each, runs, objective.spaces) for name, each in systems.items()}
    part = runs.subset(held_out)
    assessed = {name: assess_system(each, part, measures) for name, each in fitted.items()}
    inside = find_source_ties(
        fitted,
        {name: each.values for name, each in assessed.items()},
        part,
        measures,
        ranked_by_column=dataset.ranked_by_column,
        seed=seed,
    )
    infos = _list_infos(objective, dataset)
    return DataFacts(
        runs=infos,
        warnings=(
            *_find_warnings(objective, tuned, dataset, infos, part.queries),
            *warn_first_trial(describe_first_trial(dataset, *of_first_trial)),
        ),
        judgments=dataset.spec.judgments,
        queries=len(part.queries),
        unjudged_shares={
            name: float(each.unjudged.share.mean()) for name, each in assessed.items()
        },
        tied={name: int(each.ties.affected[0]) for name, each in assessed.items()},
        source_tied={
            name: int(each.ties.affected[0])
            for name, each in inside.items()
            if objective.measure.name not in each.unknown
        },
        bounds=dict(bounds),
    )


def _list_infos(objective: TuningObjective, dataset: Dataset) -> tuple[ListInfo, ...]:
    """What was noticed about the lists of each trial that the objective reads here."""
    aligned = (objective.runs, *objective.later_trials)
    return tuple(list_infos([*zip(dataset.trials, aligned, strict=False)]))


def _find_warnings(
    objective: TuningObjective,
    tuned: System,
    dataset: Dataset,
    infos: Sequence[ListInfo],
    queries: Sequence[str],
) -> tuple[DataWarning, ...]:
    """What speaks against the judge, the lists, and how the two systems read them."""
    configs = {
        "the default": objective.system.resolved_config,
        "the tuned system": tuned.resolved_config,
    }
    judge = describe_judge(dataset, [objective.system])
    grades = list_grades(dataset.qrels, queries)
    relevance = dataset.spec.binary_relevance
    return (
        *find_judge_warnings(judge, infos),
        *find_grade_warnings(grades, relevance, is_machine=judge is not None),
        *warn_ignored(count_known_unjudged(dataset), len(objective.runs.queries)),
        *find_data_warnings(infos, len(queries), configs, [objective.measure.name]),
    )


#: Settings that the record holds elsewhere, or not.
OMITTED = frozenset({"parameters", "system", "split_seed", "effort", "crag", "front", "looks"})


@dataclass(frozen=True, eq=False)
class HeldOutReport:
    """Looks at the held-out queries, and puts the report together.

    Attributes:
        gains: What is evaluated, and how.
        untuned: The other systems and the single sources; None = not compared.
        split_choice: Why these queries decide; None = not known.
    """

    gains: HeldOutGains
    untuned: UntunedValues | None = None
    split_choice: SplitChoice | None = None

    def make_record(self, name: str, provenance: Provenance) -> model.TuningReport:
        """The report.

        Args:
            name: Of the experiment.
            provenance: Of the run.
        """
        gains, result, front = self.gains, self._outcome.result, self.gains.check_front()
        rows = np.flatnonzero(self._evaluation.split.held_out).tolist()
        values = zip(gains.default[rows].tolist(), gains.tuned[rows].tolist(), strict=True)
        return model.TuningReport(
            name=name,
            dataset=gains.dataset.name,
            fingerprint=gains.dataset.fingerprint,
            **self._setting_fields(),
            **self._verdict_fields(),
            **self._threshold_fields(),
            **self._data_fields(),
            **self._sensitivity_fields(),
            front=front,
            trials=tuple(model.Trial(**vars(trial)) for trial in result.trials),
            held_out_queries=tuple(self._evaluation.objective.runs.queries[q] for q in rows),
            held_out_values=tuple(values),
            list_trials=1 if gains.default_by_trial is None else len(gains.default_by_trial),
            interrupted=result.interrupted or bool(front and front.interrupted),
            provenance=provenance,
        )

    @property
    def _evaluation(self) -> HeldOutEvaluation:
        return self.gains.evaluation

    @property
    def _outcome(self) -> SearchOutcome:
        return self.gains.outcome

    def _setting_fields(self) -> dict[str, Any]:
        """What was tuned, by which settings, and what was chosen."""
        evaluation, chosen = self._evaluation, self._outcome.chosen
        objective, split, tuning = evaluation.objective, evaluation.split, evaluation.tuning
        search = tuning.search_settings(is_data_free=split.is_cross_fitted)
        settings = tuning.model_dump(mode="json", exclude=set(OMITTED))
        return {
            "system": objective.system.name,
            "measure": objective.measure.name,
            "split": split.origin,
            "split_seed": split.split_seed,
            "split_choice": self.split_choice,
            "settings": {**settings, "sampler": search.sampler, "alpha": evaluation.alpha},
            "parameters": parameter_records(objective, split, chosen),
            "default": objective.system.resolved_config,
            "choice": model.Choice(
                rule=tuning.choose,
                trial=chosen.number,
                params=dict(chosen.params),
                config=self.gains.system.resolved_config,
            ),
        }

    def _verdict_fields(self) -> dict[str, Any]:
        """The gains, the verdict, and what unjudged documents could change."""
        evaluation, outcome, gains = self._evaluation, self._outcome, self.gains
        mask, cross = evaluation.split.held_out, outcome.cross
        held_out, _, _ = gains.family
        unjudged = gains.compare_unjudged()
        choice = describe_choice(outcome.result, outcome.chosen)
        verdict = evaluation.decide_with_unjudged(held_out, choice, unjudged)
        on_tuning = evaluation.split.tune, gains.chosen_gain_by_trial
        tune = evaluation.measure_gain(gains.chosen, gains.default, *on_tuning)
        nested = cross and evaluation.measure_gain(cross.values, gains.default, cross.fold >= 0)
        needed = estimate_needed(
            evaluation.pair_values(gains.tuned[mask], gains.default[mask], gains.gain_by_trial),
            held_out,
            evaluation.tuning.min_gain,
            factor=evaluation.next_factor,
        )
        return {
            "tune": tune,
            "nested": nested,
            "held_out": held_out,
            "level": evaluation.verdict_level,
            "verdict": verdict,
            "shrunken": shrink_gain(held_out) if verdict == "ship" else None,
            "needed": needed,
            "unjudged": unjudged and unjudged.record,
        }

    def _threshold_fields(self) -> dict[str, Any]:
        """The other verdicts of the run: on parameters by class, and on each list's thresholds."""
        evaluation, gains, per_type = self._evaluation, self.gains, self._outcome.per_type
        _, over_global, others = gains.family
        record = None
        if per_type is not None and over_global is not None:
            unjudged = gains.compare_classes_unjudged()
            record = evaluation.class_record(per_type, gains.default, over_global, unjudged)
        return {
            "per_type": record,
            "thresholds": tuple(
                fitted.to_report(gain, evaluation.decide_verdict(gain))
                for fitted, gain in zip(gains.thresholds, others, strict=True)
            ),
        }

    def _data_fields(self) -> dict[str, Any]:
        """What is beside the verdicts: the floor, gains by class, and facts of the data."""
        evaluation, gains, runs = self._evaluation, self.gains, self._evaluation.objective.runs
        held_out, seed = evaluation.split.held_out, evaluation.tuning.seed
        facts = (evaluation.objective, gains.system, gains.dataset, held_out, seed)
        by_type, by_intent = (gains.gains_by(field) for field in ("type", "intent"))
        bounds = {name: each.record for name, each in gains.bounds.items()}
        return {
            "floor": self._judge_floor(),
            "by_type": tuple(
                TypeGain(type=each.name, gain=each.gain, bounds=each.bounds) for each in by_type
            ),
            "by_intent": tuple(
                IntentGain(intent=each.name, gain=each.gain, bounds=each.bounds)
                for each in by_intent
            ),
            "data": measure_facts(*facts, self._list_first_trial(), bounds),
            "grouping": gains.dataset.spec.grouping,
            "near_duplicates": evaluation.near_duplicates,
            "synthetic_queries": count_synthetic(gains.dataset.queries, runs.queries),
        }

    def _list_first_trial(self) -> list[str]:
        """What is measured on the first trial alone where lists have several."""
        names = ["Ties", "unjudged documents"]
        names += ["thresholds of CRAG"] if self.gains.thresholds else []
        return [*names, "efforts"] if self._outcome.front is not None else names

    def _sensitivity_fields(self) -> dict[str, Any]:
        """How much the numbers matter."""
        evaluation, outcome, gains = self._evaluation, self._outcome, self.gains
        objective, seed = evaluation.objective, evaluation.tuning.seed
        return {
            "folds": fold_records(objective, outcome.cross, gains.default),
            "plateau": plateau_record(objective, evaluation.split, gains.chosen, seed),
            "importances": parameter_importances(objective.parameters, outcome.result.trials),
        }

    def _judge_floor(self) -> tuple[FloorRow, ...]:
        if self.untuned is None:
            return ()
        evaluation, mask = self._evaluation, self._evaluation.split.held_out
        tuned = self.gains.tuned[mask]
        return judge_floor(
            self.untuned.select_queries(mask),
            tuned,
            evaluation.pair_values(tuned, tuned).groups,
            is_bounded=evaluation.is_bounded,
            min_gain=evaluation.tuning.min_gain,
            alpha=2 * evaluation.verdict_level,
            seed=evaluation.tuning.seed,
            tuned_trials=select_trials(self.gains.tuned_by_trial, mask),
        )
