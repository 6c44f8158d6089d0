"""The report of a search: what the held-out queries decide, what speaks for it or against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_bench.checks.judges import describe_judge, find_judge_warnings
from fusion_bench.checks.list_warnings import find_data_warnings
from fusion_bench.checks.query_warnings import count_synthetic, find_grade_warnings, list_grades
from fusion_bench.checks.records import (
    CompletionBounds,
    DataWarning,
    ListInfo,
)
from fusion_bench.checks.source_ties import find_source_ties
from fusion_bench.data.ordering import BoolArray
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.dataset_facts import (
    count_known_unjudged,
    describe_first_trial,
    list_infos,
    warn_first_trial,
    warn_ignored,
)
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.fitting import fit_system
from fusion_bench.report import tuning_records as model
from fusion_bench.report.tuning_records import (
    DataFacts,
    FloorRow,
    IntentGain,
    SplitChoice,
    TypeGain,
)
from fusion_bench.tune.gains import UntunedValues, estimate_needed, judge_floor, select_trials
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.held_out_gains import HeldOutGains, SearchOutcome
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.sensitivity import (
    fold_records,
    parameter_importances,
    parameter_records,
    plateau_record,
)
from fusion_bench.tune.trial_selection import describe_choice, shrink_gain


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
    spaces, qrels = objective.spaces, dataset.qrels
    assessed = {
        name: assess_system(system, part, measures, spaces=spaces, qrels=qrels)
        for name, system in fitted.items()
    }
    inside = find_source_ties(
        fitted,
        {name: each.values for name, each in assessed.items()},
        part,
        measures,
        ranked_by_column=dataset.ranked_by_column,
        spaces=spaces,
        qrels=qrels,
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
