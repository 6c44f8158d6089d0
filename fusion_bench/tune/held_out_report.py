"""The report of a search: what the held-out queries decide, what speaks for it or against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fusion_bench.checks.collection_warnings import find_warnings
from fusion_bench.checks.completion_bounds import QueryBounds, find_system_bounds
from fusion_bench.checks.dataset_facts import describe_first_repeat, find_unjudged_queries
from fusion_bench.checks.judges import describe_judge
from fusion_bench.checks.lists import list_infos
from fusion_bench.checks.query_warnings import count_synthetic, list_grades
from fusion_bench.checks.records import DataWarning, ListInfo
from fusion_bench.checks.source_ties import find_source_ties
from fusion_bench.checks.unjudged import (
    UnjudgedDifference,
    UnjudgedEvidence,
    combine_evidence,
    compare_unjudged,
    judgment_kind,
    measure_unjudged,
)
from fusion_bench.config.models import parse_model
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import sort_field_values
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.plain_systems import fit_system
from fusion_bench.report import tuning_records as model
from fusion_bench.stats.comparison_family import ComparedValues, find_first_group
from fusion_bench.stats.repeat_variance import make_repeat_terms
from fusion_bench.tune import sensitivity, trial_selection
from fusion_bench.tune.crag import FittedThresholds, collect_evidence, fit_lists
from fusion_bench.tune.cross_fitting import CrossFit, adopt_fit, widen_fit
from fusion_bench.tune.gains import UntunedSystem, compare_floor, estimate_needed, select_repeats
from fusion_bench.tune.held_out import ClassTuning, HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial


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
    cross: trial_selection.CrossValidation | None = None
    per_type: ClassTuning | None = None
    front: model.ParetoFront | None = None

    @property
    def tests_a_change(self) -> bool:
        """Whether the held-out queries decide on more than the default."""
        return self.chosen is not self.result.default_trial or self.per_type is not None


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

    @property
    def _objective(self) -> TuningObjective:
        return self.evaluation.objective

    @property
    def _held_out(self) -> BoolArray:
        return self.evaluation.split.held_out

    @cached_property
    def _values(self) -> FloatArray:
        """(2, Q): of the default and of the chosen trial."""
        params = [self._objective.default_params, self.outcome.chosen.params]
        return self._objective.evaluate_params(params)

    @property
    def default(self) -> FloatArray:
        """(Q,): values of the default."""
        return np.asarray(self._values[0])

    @property
    def chosen(self) -> FloatArray:
        """(Q,): values of the chosen trial."""
        return np.asarray(self._values[1])

    @property
    def tuned(self) -> FloatArray:
        """(Q,): of what is evaluated: the chosen trial, or by fold what the others choose."""
        return self.chosen if self.fit is None else self.default + self.fit.values

    @cached_property
    def default_by_repeat(self) -> FloatArray | None:
        """(T, Q): of the default on each repeat of the lists; None = there is one."""
        return self._objective.evaluate_by_repeat(self._objective.system)

    @cached_property
    def tuned_by_repeat(self) -> FloatArray | None:
        """(T, Q): of what is evaluated."""
        if self.fit is None or self.default_by_repeat is None:
            return self._objective.evaluate_by_repeat(self.system)
        systems, codes = self._systems_by_query
        values = self.default_by_repeat.copy()
        for number, system in enumerate(systems):
            by_repeat = self._objective.evaluate_by_repeat(system)
            if by_repeat is not None:
                values[:, codes == number] = by_repeat[:, codes == number]
        return values

    @property
    def gain_by_repeat(self) -> FloatArray | None:
        """(T, Q): tuned − default."""
        return _subtract(self.tuned_by_repeat, self.default_by_repeat)

    @cached_property
    def chosen_gain_by_repeat(self) -> FloatArray | None:
        """(T, Q): the chosen trial of the search − default."""
        if self.fit is None:
            return self.gain_by_repeat
        return _subtract(self._objective.evaluate_by_repeat(self.system), self.default_by_repeat)

    @cached_property
    def _systems_by_query(self) -> tuple[list[System], IntArray]:
        """The systems that are evaluated, and (Q,) the number of each query's."""
        if self.fit is None:
            return [self.system], np.zeros(len(self._objective.runs.queries), dtype=np.int64)
        # Each query is evaluated with what the other folds choose.
        evaluation, objective = self.evaluation, self._objective
        trials = self.outcome.result.computed_trials
        params = (
            trials[t].params if t >= 0 else objective.default_params
            for t in self.fit.chosen.tolist()
        )
        codes = trial_selection.tuning_folds(objective, evaluation.split, evaluation.tuning)
        return [objective.build_system(each) for each in params], codes

    @cached_property
    def system(self) -> System:
        """The chosen one."""
        return self._objective.build_system(self.outcome.chosen.params)

    @cached_property
    def thresholds(self) -> list[FittedThresholds]:
        """CRAG's thresholds of each list; empty = not asked for."""
        crag = self.evaluation.tuning.crag
        if crag is None:
            return []
        lists = collect_evidence(self._objective, self.system, self.dataset, crag)
        return fit_lists(lists, self.evaluation.split, crag)

    @cached_property
    def family(self) -> tuple[model.Gain, model.Gain | None, list[model.Gain]]:
        """Tuned − default, by class − one set for all (None = not asked for), and thresholds.

        All verdicts of the run are one family.
        """
        mask, per_type = self._held_out, self.outcome.per_type
        groups = self._objective.runs.group_codes
        rows, repeats = [(self.tuned[mask], self.default[mask])], [self.gain_by_repeat]
        if per_type is not None:
            rows.append((per_type.values[mask], per_type.overall[mask]))
            sides = map(self._objective.evaluate_by_repeat, (per_type.system, per_type.base))
            repeats.append(_subtract(*sides))
        rows += [
            (each.utilities(each.tuned), each.utilities(each.default)) for each in self.thresholds
        ]
        gain, *others = self.evaluation.estimate_family(rows, repeats)
        if self.fit is not None:
            fit = widen_fit(self.fit, make_repeat_terms([self.gain_by_repeat], groups), groups)
            gain = adopt_fit(gain, fit, is_bounded=self.evaluation.is_bounded)
        return gain, (others.pop(0) if per_type is not None else None), others

    def compare_unjudged(self) -> UnjudgedDifference | None:
        """Of what is evaluated − the default; None with complete judgments."""
        return self._compare_systems(*self._systems_by_query, self._objective.system)

    def _compare_systems(
        self, tuned: Sequence[System], codes: IntArray | None, default: System
    ) -> UnjudgedDifference | None:
        """What unjudged documents could change in the held-out difference of two systems.

        Args:
            tuned: Systems.
            codes: Shape (Q,): which of them evaluates each query; None = there is one.
            default: The system to compare with.
        """
        objective, held_out = self._objective, self._held_out
        queries = objective.runs.queries
        kind = judgment_kind(self.dataset, [queries[q] for q in np.flatnonzero(held_out)])
        if kind == "complete":
            return None
        known: dict[str, UnjudgedEvidence] = {}
        keys = [repr(system.resolved_config) for system in (*tuned, default)]
        for key, system in zip(keys, (*tuned, default), strict=True):
            known[key] = known[key] if key in known else self._measure_unjudged(system)
        *parts, baseline = (known[key] for key in keys)
        codes = np.zeros(len(queries), dtype=np.int64) if codes is None else codes
        return compare_unjudged(
            combine_evidence(parts, codes).select_queries(held_out),
            baseline.select_queries(held_out),
            groups=objective.runs.group_codes[held_out],
            alpha=self.evaluation.alpha,
            kind=kind,
            is_bounded=self.evaluation.is_bounded,
        )

    def _measure_unjudged(self, system: System) -> UnjudgedEvidence:
        """Of all queries, over the repeats of the lists."""
        [evidence] = measure_unjudged(system, self._objective.runs, [self._objective.measure])
        return evidence


def _build_system(point: model.ParetoPoint) -> System:
    return parse_model(System, {**point.config, "name": "point"})


def _subtract(first: FloatArray | None, second: FloatArray | None) -> FloatArray | None:
    """First − second, (T, Q); None = there is one trial."""
    return None if first is None or second is None else first - second


#: Sign flips behind the first group, on which no verdict rests.
GROUP_DRAWS = 2_000
#: Settings that the record holds elsewhere, or not.
OMITTED = frozenset({"parameters", "system", "split_seed", "effort", "crag", "front", "looks"})


@dataclass(frozen=True, eq=False)
class HeldOutReport(HeldOutGains):
    """Looks at the held-out queries, and puts the report together.

    Attributes:
        untuned: The other systems and the single sources; none = not compared.
        split_choice: Why these queries decide; None = not known.
    """

    untuned: Sequence[UntunedSystem] = ()
    split_choice: model.SplitChoice | None = None

    def make_record(self, name: str, provenance: Provenance) -> model.TuningReport:
        """The report.

        Args:
            name: Of the experiment.
            provenance: Of the run.
        """
        result, front = self.outcome.result, self._check_front()
        rows = np.flatnonzero(self._held_out).tolist()
        values = zip(self.default[rows].tolist(), self.tuned[rows].tolist(), strict=True)
        return model.TuningReport(
            name=name,
            dataset=self.dataset.name,
            fingerprint=self.dataset.fingerprint,
            **self._setting_fields(),
            **self._verdict_fields(),
            **self._data_fields(),
            front=front,
            trials=tuple(model.TrialRecord(**vars(trial)) for trial in result.trials),
            held_out_queries=tuple(self._objective.runs.queries[q] for q in rows),
            held_out_values=tuple(values),
            list_trials=1 if self.default_by_repeat is None else len(self.default_by_repeat),
            interrupted=result.interrupted or bool(front and front.interrupted),
            provenance=provenance,
        )

    def _check_front(self) -> model.ParetoFront | None:
        """The front, with what is judged, and what the rest could change in its best gain."""
        front = self.outcome.front
        if front is None:
            return None
        front = front.model_copy(update={"points": tuple(map(self._with_bounds, front.points))})
        if "default" in front.best.roles:
            return front
        best = [_build_system(front.best)]
        unjudged = self._compare_systems(best, None, self._objective.system)
        if unjudged is None:
            return front
        is_contradicted = unjudged.decides(1, self.evaluation.tuning.min_gain)
        return front.model_copy(
            update={"unjudged": unjudged.record, "is_contradicted": is_contradicted}
        )

    def _with_bounds(self, point: model.ParetoPoint) -> model.ParetoPoint:
        """A point with what is judged of it, where it is shown."""
        if not point.is_shown:
            return point
        bounds = self._find_bounds(_build_system(point))
        return point.model_copy(update={"bounds": bounds and bounds.record})

    def _find_bounds(self, system: System) -> QueryBounds | None:
        """What unjudged documents could make of held-out values; None where all are judged."""
        objective = self._objective
        [bounds] = find_system_bounds(
            system, self._held_out_runs, [objective.measure], training=objective.runs
        )
        return bounds

    @cached_property
    def _bounds(self) -> dict[str, QueryBounds]:
        """Of the default, the tuned system, and the one with parameters by class."""
        per_type = self.outcome.per_type
        systems = (
            self._sides
            if per_type is None
            else {**self._sides, f"tuned by {per_type.key.field}": per_type.system}
        )
        known = {name: self._find_bounds(system) for name, system in systems.items()}
        return {name: bounds for name, bounds in known.items() if bounds is not None}

    @cached_property
    def _held_out_runs(self) -> AlignedRuns:
        """The lists of the held-out queries."""
        return self._objective.runs.subset(self._held_out)

    @property
    def _sides(self) -> dict[str, System]:
        return {"the default": self._objective.system, "the tuned system": self.system}

    def _gains_by(self, field: str) -> Iterator[dict[str, Any]]:
        """The held-out gain of each value of a field of the queries; nothing with fewer than two.

        The gains are not adjusted.
        """
        runs, held_out = self._objective.runs, self._held_out
        values = np.array(runs.types if field == "type" else runs.values_of(field), dtype=object)
        names = sort_field_values(values[held_out])
        for name in names if len(names) > 1 else ():
            mask = held_out & (values == name)
            yield {
                field: name,
                "gain": self.evaluation.measure_gain(
                    self.tuned, self.default, mask, self.gain_by_repeat
                ),
                "bounds": {
                    system: bounds.select_queries(mask[held_out]).record
                    for system, bounds in self._bounds.items()
                },
            }

    def _setting_fields(self) -> dict[str, Any]:
        """What was tuned, by which settings, what was chosen, and how much the numbers matter."""
        objective, outcome, chosen = self._objective, self.outcome, self.outcome.chosen
        split, tuning = self.evaluation.split, self.evaluation.tuning
        search = tuning.search_settings(is_data_free=split.is_cross_fitted)
        settings = tuning.model_dump(mode="json", exclude=set(OMITTED))
        return {
            "system": objective.system.name,
            "measure": objective.measure.name,
            "split": split.origin,
            "split_seed": split.split_seed,
            "split_choice": self.split_choice,
            "settings": {**settings, "sampler": search.sampler, "alpha": self.evaluation.alpha},
            "parameters": sensitivity.parameter_records(objective, split, chosen),
            "default": objective.system.resolved_config,
            "choice": model.ChosenTrial(
                rule=tuning.choose,
                trial=chosen.number,
                params=dict(chosen.params),
                config=self.system.resolved_config,
            ),
            "folds": sensitivity.fold_records(objective, outcome.cross, self.default),
            "plateau": sensitivity.plateau_record(objective, split, self.chosen, tuning.seed),
            "importances": sensitivity.parameter_importances(
                objective.parameters, outcome.result.trials
            ),
        }

    def _verdict_fields(self) -> dict[str, Any]:
        """The gains, the verdicts, and what unjudged documents could change."""
        evaluation, outcome, mask = self.evaluation, self.outcome, self._held_out
        (held_out, over_global, others), cross = self.family, outcome.cross
        unjudged, per_type, record = self.compare_unjudged(), outcome.per_type, None
        choice = trial_selection.describe_choice(outcome.result, outcome.chosen)
        verdict = evaluation.decide_with_unjudged(held_out, choice, unjudged)
        if per_type is not None and over_global is not None:
            of_classes = self._compare_systems([per_type.system], None, per_type.base)
            record = evaluation.class_record(per_type, self.default, over_global, of_classes)
        needed = estimate_needed(
            evaluation.pair_values(self.tuned[mask], self.default[mask], self.gain_by_repeat),
            held_out,
            evaluation.tuning.min_gain,
            factor=evaluation.next_factor,
        )
        on_tuning = evaluation.split.tune, self.chosen_gain_by_repeat
        return {
            "tune": evaluation.measure_gain(self.chosen, self.default, *on_tuning),
            "nested": cross
            and evaluation.measure_gain(cross.values, self.default, cross.fold >= 0),
            "held_out": held_out,
            "level": evaluation.verdict_level,
            "verdict": verdict,
            "shrunken": trial_selection.shrink_gain(held_out) if verdict == "ship" else None,
            "needed": needed,
            "unjudged": unjudged and unjudged.record,
            "per_type": record,
            "thresholds": tuple(
                fitted.to_report(gain, evaluation.decide_verdict(gain))
                for fitted, gain in zip(self.thresholds, others, strict=True)
            ),
        }

    def _find_first_group(self) -> tuple[str, ...]:
        """The held-out systems that are not shown to be worse than any other."""
        if not self.untuned:
            return ()
        sides = (self.default, self.default_by_repeat), (self.tuned, self.tuned_by_repeat)
        named = zip(self._sides, sides, strict=True)
        systems = [*(UntunedSystem(name, "system", *side) for name, side in named), *self.untuned]
        every = [each.select_queries(self._held_out) for each in systems]
        values = every[0].values
        table = ComparedValues(
            self._objective.measure.name,
            {each.name: each.values for each in every},
            every[0].name,
            tuple(self.evaluation.pair_values(values, values).groups),
            self.evaluation.is_bounded,
            {each.name: each.repeats for each in every if each.repeats is not None},
        )
        alpha, seed = 2 * self.evaluation.verdict_level, self.evaluation.tuning.seed
        return find_first_group(table, seed=seed, alpha=alpha, draws=GROUP_DRAWS)

    def _data_fields(self) -> dict[str, Any]:
        """What is beside the verdicts: the floor, gains by class, and facts of the data."""
        evaluation, mask = self.evaluation, self._held_out
        tuned = self.tuned[mask]
        return {
            "floor": compare_floor(
                [each.select_queries(mask) for each in self.untuned],
                tuned,
                evaluation.pair_values(tuned, tuned).groups,
                is_bounded=evaluation.is_bounded,
                min_gain=evaluation.tuning.min_gain,
                alpha=2 * evaluation.verdict_level,
                seed=evaluation.tuning.seed,
                tuned_repeats=select_repeats(self.tuned_by_repeat, mask),
            ),
            "first_group": self._find_first_group(),
            "by_type": tuple(model.TypeGain(**each) for each in self._gains_by("type")),
            "by_intent": tuple(model.IntentGain(**each) for each in self._gains_by("intent")),
            "data": self._measure_facts(),
            "grouping": self.dataset.spec.grouping,
            "near_duplicates": evaluation.near_duplicates,
            "synthetic_queries": count_synthetic(
                self.dataset.queries, self._objective.runs.queries
            ),
        }

    def _measure_facts(self) -> model.DataFacts:
        """Facts of the default and the tuned system on the held-out queries, first trial."""
        objective, dataset = self._objective, self.dataset
        runs, measures = objective.runs.repeats[0], [objective.measure]
        part = self._held_out_runs.repeats[0]
        fitted = {name: fit_system(each, runs) for name, each in self._sides.items()}
        assessed = {name: assess_system(each, part, measures) for name, each in fitted.items()}
        inside = find_source_ties(
            fitted,
            {name: each.values for name, each in assessed.items()},
            part,
            measures,
            ranked_by_column=dataset.ranked_by_column,
            seed=self.evaluation.tuning.seed,
        )
        infos = tuple(list_infos([*zip(dataset.repeats, objective.runs.repeats, strict=False)]))
        return model.DataFacts(
            runs=infos,
            warnings=tuple(self._find_warnings(infos, part.queries)),
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
            bounds={name: each.record for name, each in self._bounds.items()},
        )

    def _find_warnings(
        self, infos: Sequence[ListInfo], queries: Sequence[str]
    ) -> list[DataWarning]:
        """What speaks against the judge, the lists, and how the two systems read them."""
        dataset, objective = self.dataset, self._objective
        of_first = ["Ties", "unjudged documents"]
        of_first += ["thresholds of CRAG"] if self.thresholds else []
        of_first += ["efforts"] if self.outcome.front is not None else []
        return find_warnings(
            infos,
            len(queries),
            {name: system.resolved_config for name, system in self._sides.items()},
            [objective.measure.name],
            judge=describe_judge(dataset, [objective.system]),
            grades=list_grades(dataset.qrels, queries),
            binary_relevance=dataset.spec.binary_relevance,
            ignored=_count_known_unjudged(dataset),
            described=len(objective.runs.queries),
            synthetic=count_synthetic(dataset.queries, objective.runs.queries),
            near_duplicates=self.evaluation.near_duplicates,
            first_trial=describe_first_repeat(dataset, *of_first),
            judgment_notes=dataset.qrels.notes,
        )


def _count_known_unjudged(dataset: Dataset) -> int:
    """The same of a whole dataset, of any split."""
    if dataset.spec.queries is None:
        return 0
    return len(find_unjudged_queries(dataset) & dataset.queries.keys())
