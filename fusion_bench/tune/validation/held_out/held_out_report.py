"""The report of a search: what the held-out queries decide, and what speaks for and against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.evaluation.synthetic_queries import count_synthetic
from fusion_bench.report.tuning_records import trials as trial_model
from fusion_bench.report.tuning_records import tuning_report as model
from fusion_bench.report.tuning_records.class_gains import IntentGain, TypeGain
from fusion_bench.report.tuning_records.floor import FloorRow
from fusion_bench.report.tuning_records.split_choice import SplitChoice
from fusion_bench.tune.validation.floor import UntunedValues, judge_floor, select_trials
from fusion_bench.tune.validation.gains import estimate_needed
from fusion_bench.tune.validation.held_out.data_facts import measure_facts
from fusion_bench.tune.validation.held_out.evaluation import HeldOutEvaluation
from fusion_bench.tune.validation.held_out.held_out_gains import HeldOutGains
from fusion_bench.tune.validation.held_out.search_outcome import SearchOutcome
from fusion_bench.tune.validation.sensitivity.importance import parameter_importances
from fusion_bench.tune.validation.sensitivity.sensitivity_records import (
    fold_records,
    parameter_records,
    plateau_record,
)
from fusion_bench.tune.validation.shrunken_gain import shrink_gain
from fusion_bench.tune.validation.trial_selection import describe_choice

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
            trials=tuple(trial_model.Trial(**vars(trial)) for trial in result.trials),
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
