"""The report of a search: what the held-out queries decide, what speaks for it or against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from fusion_bench.checks.collection_warnings import find_warnings
from fusion_bench.checks.dataset_facts import describe_first_repeat, find_unjudged_queries
from fusion_bench.checks.judges import describe_judge
from fusion_bench.checks.lists import list_infos
from fusion_bench.checks.query_warnings import count_synthetic, list_grades
from fusion_bench.checks.records import DataWarning, ListInfo
from fusion_bench.checks.source_ties import find_source_ties
from fusion_bench.checks.unjudged import find_system_bounds, judgment_kind, measure_unjudged
from fusion_bench.config.models import parse_model
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.records import sort_field_values
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.recommendation import prefer_least
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.plain_systems import fit_system
from fusion_bench.report import tuning_records as model
from fusion_bench.report.tuning_texts import PreferredSystem, recommend
from fusion_bench.stats.inference import find_rivals, infer_family
from fusion_bench.stats.unjudged import (
    QueryBounds,
    UnjudgedDifference,
    compare_unjudged,
)
from fusion_bench.stats.values import MeasuredValues, Pair
from fusion_bench.tune import sensitivity, trial_selection
from fusion_bench.tune.crag import FittedThresholds, collect_evidence, fit_lists
from fusion_bench.tune.held_out import (
    ClassTuning,
    HeldOutEvaluation,
    UntunedSystem,
    compare_floor,
    estimate_needed,
)
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


#: Names the lists of two systems that are evaluated on the same repeats.
REPEATED: Final = frozenset({"lists"})


@dataclass(frozen=True, eq=False)
class HeldOutGains:
    """Evaluates what a search chose.

    Attributes:
        evaluation: The objective, its split, and the rules.
        outcome: What was searched.
        dataset: Where the queries come from.
    """

    evaluation: HeldOutEvaluation
    outcome: SearchOutcome
    dataset: Dataset

    @property
    def _objective(self) -> TuningObjective:
        return self.evaluation.objective

    @property
    def _held_out(self) -> BoolArray:
        return self.evaluation.split.held_out

    @cached_property
    def pair(self) -> Pair:
        """The chosen trial and the default on all queries."""
        params = [self.outcome.chosen.params, self._objective.default_params]
        values = self._objective.evaluate_params(params)
        return self._pair_systems((self.system, self._objective.system), values)

    def _pair_systems(self, systems: tuple[System, System], values: Iterable[FloatArray]) -> Pair:
        """Two systems on all queries, with the same repeats of the lists."""
        runs = self._objective.runs
        first, second = (
            MeasuredValues(row, self._objective.evaluate_by_repeat(system), REPEATED)
            for system, row in zip(systems, values, strict=True)
        )
        return Pair(first, second, runs.groups, is_bounded=self.evaluation.is_bounded)

    @property
    def default(self) -> FloatArray:
        """(Q,): values of the default."""
        return self.pair.baseline.values

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
        evaluation, per_type = self.evaluation, self.outcome.per_type
        pairs = [self.pair]
        if per_type is not None:
            systems = per_type.system, per_type.base
            pairs.append(self._pair_systems(systems, (per_type.values, per_type.overall)))
        rows = [pair.select_queries(self._held_out) for pair in pairs]
        rows += [
            Pair.from_arrays(
                *(each.utilities(each.tuned), each.utilities(each.default), rows[0].keys),
                is_bounded=evaluation.is_bounded,
            )
            for each in self.thresholds
        ]
        gain, *others = evaluation.estimate_family(rows)
        return gain, (others.pop(0) if per_type is not None else None), others

    def compare_unjudged(self) -> UnjudgedDifference | None:
        """Bounds of chosen − default by unjudged documents; None if judgments are complete."""
        return self._compare_systems(self.system, self._objective.system)

    def _compare_systems(self, tuned: System, default: System) -> UnjudgedDifference | None:
        """Bounds of two systems' held-out difference by unjudged documents."""
        objective, held_out = self._objective, self._held_out
        queries = objective.runs.queries
        kind = judgment_kind(self.dataset, [queries[q] for q in np.flatnonzero(held_out)])
        if kind == "complete":
            return None
        first, second = (
            evidence.select_queries(held_out)
            for system in (tuned, default)
            for evidence in measure_unjudged(system, objective.runs, [objective.measure])
        )
        return compare_unjudged(
            first,
            second,
            groups=objective.runs.group_codes[held_out],
            alpha=self.evaluation.alpha,
            kind=kind,
            is_bounded=self.evaluation.is_bounded,
        )


def _build_system(point: model.ParetoPoint) -> System:
    return parse_model(System, {**point.config, "name": "point"})


#: Settings that the record holds elsewhere, or not.
OMITTED = frozenset({"parameters", "system", "split_seed", "effort", "crag", "front", "looks"})


@dataclass(frozen=True, eq=False)
class HeldOutReport(HeldOutGains):
    """Looks at the held-out queries, and puts the report together.

    Attributes:
        untuned: The other systems and the single sources; none = not compared.
    """

    untuned: Sequence[UntunedSystem] = ()

    def make_record(self, name: str, provenance: Provenance) -> model.TuningReport:
        """The report.

        Args:
            name: Of the experiment.
            provenance: Of the run.
        """
        result, front, verdicts = self.outcome.result, self._check_front(), self._verdict_fields()
        objective, chosen = self._objective, self.outcome.chosen
        split, tuning = self.evaluation.split, self.evaluation.tuning
        settings = tuning.model_dump(mode="json", exclude=set(OMITTED))
        rows = np.flatnonzero(self._held_out).tolist()
        sides = self.pair.baseline.values, self.pair.candidate.values
        values = zip(*(side[rows].tolist() for side in sides), strict=True)
        report = model.TuningReport(
            name=name,
            dataset=self.dataset.name,
            fingerprint=self.dataset.fingerprint,
            system=objective.system.name,
            measure=objective.measure.name,
            split=split.origin,
            split_seed=split.split_seed,
            settings={**settings, "alpha": self.evaluation.alpha},
            parameters=sensitivity.parameter_records(objective, split, chosen),
            default=objective.system.resolved_config,
            choice=model.ChosenTrial(
                rule=tuning.choose,
                trial=chosen.number,
                params=dict(chosen.params),
                config=self.system.resolved_config,
            ),
            folds=sensitivity.fold_records(objective, self.outcome.cross, self.default),
            plateau=sensitivity.plateau_record(
                objective, split, self.pair.candidate.values, tuning.seed
            ),
            importances=sensitivity.parameter_importances(objective.parameters, result.trials),
            **verdicts,
            **self._data_fields(),
            front=front,
            trials=tuple(model.TrialRecord(**vars(trial)) for trial in result.trials),
            held_out_queries=tuple(objective.runs.queries[q] for q in rows),
            held_out_values=tuple(values),
            list_trials=self.pair.baseline.count,
            interrupted=result.interrupted or bool(front and front.interrupted),
            provenance=provenance,
        )
        untuned = self._prefer_untuned(report)
        return report.model_copy(update={"recommendation": recommend(report, untuned)})

    def _check_front(self) -> model.ParetoFront | None:
        """The front, with what is judged, and what the rest could change in its best gain."""
        front = self.outcome.front
        if front is None:
            return None
        points = []
        for point in front.points:
            bounds = self._find_bounds(_build_system(point)) if point.is_shown else None
            points.append(point.model_copy(update={"bounds": bounds.record}) if bounds else point)
        front = front.model_copy(update={"points": tuple(points)})
        if "default" in front.best.roles:
            return front
        unjudged = self._compare_systems(_build_system(front.best), self._objective.system)
        if unjudged is None:
            return front
        is_contradicted = unjudged.decides(1, self.evaluation.tuning.min_gain)
        return front.model_copy(
            update={"unjudged": unjudged.record, "is_contradicted": is_contradicted}
        )

    def _find_bounds(self, system: System) -> QueryBounds | None:
        """Bounds of held-out values by unjudged documents; None if all are judged."""
        objective = self._objective
        [bounds] = find_system_bounds(
            system, self._held_out_runs, [objective.measure], training=objective.runs
        )
        return bounds

    @cached_property
    def _bounds(self) -> dict[str, QueryBounds]:
        """Bounds of the default, the tuned system and the one with parameters by class."""
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

        They are one family.
        """
        runs, held_out = self._objective.runs, self._held_out
        values = np.array(runs.types if field == "type" else runs.values_of(field), dtype=object)
        names = sort_field_values(values[held_out])
        masks = [held_out & (values == name) for name in names if len(names) > 1]
        gains = self.evaluation.estimate_family([self.pair.select_queries(mask) for mask in masks])
        for name, mask, gain in zip(names, masks, gains, strict=False):
            yield {
                field: name,
                "gain": gain,
                "bounds": {
                    system: bounds.select_queries(mask[held_out]).record
                    for system, bounds in self._bounds.items()
                },
            }

    def _verdict_fields(self) -> dict[str, Any]:
        """The gains, the verdicts, and what unjudged documents could change."""
        evaluation, outcome = self.evaluation, self.outcome
        (held_out, over_global, others), cross = self.family, outcome.cross
        unjudged, per_type, record = self.compare_unjudged(), outcome.per_type, None
        choice = trial_selection.describe_choice(outcome.result, outcome.chosen)
        verdict = evaluation.decide_with_unjudged(held_out, choice, unjudged)
        if per_type is not None and over_global is not None:
            of_classes = self._compare_systems(per_type.system, per_type.base)
            record = evaluation.class_record(per_type, self.default, over_global, of_classes)
        needed = estimate_needed(
            self.pair.select_queries(self._held_out),
            held_out,
            evaluation.tuning.min_gain,
            factor=evaluation.next_factor,
        )
        other_means: dict[str, tuple[float, float]] = {}  # held-out, of the default and the choice
        params = [self._objective.default_params, outcome.chosen.params]
        for measure in self._objective.others:
            values = replace(self._objective, measure=measure).evaluate_params(params)
            default, tuned = values[:, self._held_out].mean(axis=1).tolist()
            other_means[measure.name] = default, tuned
        return {
            "tune": evaluation.measure_gain(self.pair.select_queries(evaluation.split.tune)),
            "nested": cross
            and evaluation.measure_gain(
                evaluation.pair_values(cross.values, self.default, cross.fold >= 0)
            ),
            "held_out": held_out,
            "other_means": other_means,
            "level": evaluation.verdict_level,
            "verdict_against_default": verdict,
            "needed": needed,
            "unjudged": unjudged and unjudged.record,
            "per_type": record,
            "thresholds": tuple(
                fitted.to_report(gain, evaluation.decide_verdict(gain))
                for fitted, gain in zip(self.thresholds, others, strict=True)
            ),
        }

    @cached_property
    def _table(self) -> dict[str, UntunedSystem]:
        """The default, the tuned system, and what nobody tuned, by name, on held-out queries."""
        values, lists = (self.pair.baseline, self.pair.candidate), self.dataset.repeat_lists
        sides = [
            UntunedSystem(each.values, each.repeats, lists & system.list_keys, name=name)
            for (name, system), each in zip(self._sides.items(), values, strict=True)
        ]
        every = [each.select_queries(self._held_out) for each in (*sides, *self.untuned)]
        return {each.name: each for each in every}

    @cached_property
    def _rivals(self) -> dict[str, frozenset[str]]:
        """Map each system of the table to the systems that are shown to be better."""
        evaluation = self.evaluation
        return find_rivals(
            self._table,
            evaluation.list_groups(self._held_out),
            alpha=2 * evaluation.verdict_level,
            seed=evaluation.tuning.seed,
        )

    def _prefer_untuned(self, report: model.TuningReport) -> PreferredSystem | None:
        """The untuned system to recommend before the tuned one; None = none.

        It is in the best group, and its mean is not below the default's. Where the tuned system is
        not shown to be better than the default, nothing is recommended that is not shown to be,
        either.
        """
        default, _ = self._sides
        best = {  # the highest mean first
            row.name: self._table[row.name]
            for row in report.floor
            if row.name in report.first_group and row.mean >= report.held_out.default
        }
        if report.verdict != "ship":
            best = {name: each for name, each in best.items() if name in self._rivals[default]}
        if not best or report.verdict in {"unjudged decide", "groups decide"}:
            return None
        name, reason = prefer_least({name: each.effort for name, each in best.items()})
        system, base = best[name], self._table[default]
        groups = self.evaluation.list_groups(self._held_out)
        [row] = infer_family(
            [Pair(system, base, groups)],
            seed=self.evaluation.tuning.seed,
            alpha=2 * self.evaluation.verdict_level,
        )
        reason = reason if len(best) > 1 else ""
        return PreferredSystem(name, dict(system.config), reason, len(best), row.loss_share)

    def _data_fields(self) -> dict[str, Any]:
        """Fields of the report on the floor, gains by class and facts of the data."""
        evaluation, (_, tuned) = self.evaluation, self._sides
        best = [name for name, better in self._rivals.items() if not better]
        return {
            "floor": compare_floor(
                [each for name, each in self._table.items() if name not in self._sides],
                self._table[tuned],
                evaluation.list_groups(self._held_out),
                is_bounded=evaluation.is_bounded,
                min_gain=evaluation.tuning.min_gain,
                alpha=2 * evaluation.verdict_level,
                seed=evaluation.tuning.seed,
            ),
            "first_group": tuple(best) if self.untuned else (),
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
        """Find warnings on the judge, the lists and how the two systems read them."""
        dataset, objective = self.dataset, self._objective
        of_first = ["Ties", "unjudged documents"]
        of_first += ["thresholds of CRAG"] if self.thresholds else []
        of_first += ["efforts"] if self.outcome.front is not None else []
        # Queries with a record and without a judgment, over all splits of the dataset.
        has_records = dataset.spec.queries is not None
        unjudged = find_unjudged_queries(dataset) & dataset.queries.keys() if has_records else ()
        return find_warnings(
            infos,
            len(queries),
            {name: system.resolved_config for name, system in self._sides.items()},
            [objective.measure.name],
            judge=describe_judge(dataset, [objective.system]),
            grades=list_grades(dataset.qrels, queries),
            binary_relevance=dataset.spec.binary_relevance,
            ignored=len(unjudged),
            described=len(objective.runs.queries),
            synthetic=count_synthetic(dataset.queries, objective.runs.queries),
            near_duplicates=self.evaluation.near_duplicates,
            first_trial=describe_first_repeat(dataset, *of_first),
            judgment_notes=dataset.qrels.notes,
        )
